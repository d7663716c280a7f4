"""From the fleet's broker into landing files: acknowledged once they are on the disk."""
