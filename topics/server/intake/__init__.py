"""What one connection may bring: in which order its requests begin, how much of them is held, and how many a turn."""
