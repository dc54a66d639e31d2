"""From what crossed the wire to the very records: the steps, the study, the map of risk."""
