"""Training of the four stages: the project's own short loop, TRL for real models, Opacus for DP."""
