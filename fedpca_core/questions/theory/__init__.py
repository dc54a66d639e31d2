"""What is proved about agreeing on one minimiser, beside what rounds really do."""
