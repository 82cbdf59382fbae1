from tests.acceptance.conftest import home

__all__ = ["home"]
