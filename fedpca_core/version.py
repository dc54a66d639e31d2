"""The version, said once: package, citation and pages read it here."""

__version__ = "0.2.0"
