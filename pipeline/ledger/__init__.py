"""What gateways say became of their numbers, beside what arrived."""
