"""What a model gives away: exposure, likelihood ratios, bounds on epsilon."""
