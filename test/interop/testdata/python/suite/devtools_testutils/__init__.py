"""What azure-eventhub's own tests use of a package that is not published."""

import time

from azure.core.credentials import AccessToken

# A token without a signature: the yard of these tests takes any.
JWT = "eyJhbGciOiJub25lIn0.eyJhdWQiOiJodHRwczovL2V2ZW50aHVicy5henVyZS5uZXQifQ."


class Credential:
    def get_token(self, *scopes, **options):
        return AccessToken(JWT, int(time.time()) + 3600)


class AsyncCredential:
    async def get_token(self, *scopes, **options):
        return Credential().get_token(*scopes, **options)

    async def close(self):
        pass

    async def __aenter__(self):
        return self

    async def __aexit__(self, *details):
        pass


def get_credential(is_async=False, **options):
    return AsyncCredential() if is_async else Credential()


def get_region_override(default="westus"):
    return default
