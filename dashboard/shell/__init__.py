"""What every page is made of: navigation, controls, jobs, sharing, layout, colours."""
