"""What the Attack page shows of its studies, as plain parts: a file for each section."""
