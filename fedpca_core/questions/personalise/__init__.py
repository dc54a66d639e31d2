"""Who should collaborate: personalised PCA between training alone and one shared model."""
