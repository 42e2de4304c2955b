"""What was reported, and whether it deserves an investigation. Ends where a case begins."""
