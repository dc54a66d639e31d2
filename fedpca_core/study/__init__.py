"""What every question is made of: studies, their results as tables, and figures as plain data."""
