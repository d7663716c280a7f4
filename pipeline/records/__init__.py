"""What a landing record and its payload must be, and the reason where one is not."""
