"""Allure results completed from the ledger."""
