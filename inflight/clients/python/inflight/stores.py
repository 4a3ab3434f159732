"""The stores that a runner can benchmark. Each client library is loaded only when it is asked for.

`get`, `set` and `delete` return futures, or coroutines if `is_async`; a get of a missing key results in None.
"""

import re
import ssl

CONNECT_TIMEOUT_S = 10


def _hazelcast_tls(plan):
    """hazelcast-python-client trusts any certificate unless it is given a file of authorities."""
    if not plan["target"].startswith("hazelcasts:"):
        return {}
    if plan.get("insecure"):
        return {"ssl_enabled": True}
    return {"ssl_enabled": True, "ssl_cafile": _authorities(plan), "ssl_check_hostname": True}


def _redis_tls(plan):
    if not plan["target"].startswith("rediss:"):
        return {}
    if plan.get("insecure"):
        return {"ssl_cert_reqs": "none", "ssl_check_hostname": False}
    return {"ssl_ca_certs": _authorities(plan), "ssl_check_hostname": True}


def _authorities(plan):
    """The plan's file, or the system's."""
    return plan.get("ca") or ssl.get_default_verify_paths().cafile


class NullStore:
    """Answers at once. Values are copies, so that checking one compares its bytes as it does with a real store."""

    client, member, is_async = {"name": "null", "version": "1"}, None, False

    def __init__(self, workload):
        # hazelcast-python-client's own kind of future, if it is there.
        try:
            from hazelcast.future import ImmediateFuture as Done
        except ImportError:
            from concurrent.futures import Future

            def Done(value):
                future = Future()
                future.set_result(value)
                return future

        self._done = Done
        self._nothing = Done(None)
        self._copies = {name: workload.value(key).encode().decode() for key, name in enumerate(workload.names)}

    def get(self, key):
        return self._done(self._copies.get(key))

    def set(self, _key, _value):
        return self._nothing

    def delete(self, _key):
        return self._nothing

    def is_unknown(self, _error):
        return False

    def close(self):
        pass


class HazelcastStore:
    """hazelcast-python-client; callbacks run in its reactor's thread."""

    is_async = False

    def __init__(self, plan):
        import logging

        import hazelcast
        from hazelcast import errors

        logging.getLogger("hazelcast").setLevel(logging.ERROR)
        addresses, name = re.fullmatch(r"hazelcasts?://([^/]+)/(.+)", plan["target"]).groups()
        self._client = hazelcast.HazelcastClient(
            cluster_name=plan["cluster"],
            cluster_members=addresses.split(","),
            connection_timeout=CONNECT_TIMEOUT_S,
            cluster_connect_timeout=CONNECT_TIMEOUT_S,
            invocation_timeout=plan["timeout_ms"] / 1000,
            **_hazelcast_tls(plan),
        )
        members = self._client.cluster_service.get_members()
        version = members[0].version if members else None
        self.client = {"name": "hazelcast-python-client", "version": hazelcast.__version__}
        self.member = {"version": f"{version.major}.{version.minor}.{version.patch}"} if version else None
        hazelcast_map = self._client.get_map(name)
        self.get, self.set, self.delete = hazelcast_map.get, hazelcast_map.set, hazelcast_map.delete
        # The connection broke, or the client's own time ran out, after the operation may have been sent.
        self._unknown = (
            errors.TargetDisconnectedError, errors.HazelcastIOError, errors.SocketError, errors.OperationTimeoutError,
            errors.IndeterminateOperationStateError, errors.MemberLeftError, errors.HazelcastClientNotActiveError,
            errors.HazelcastInstanceNotActiveError,
        )  # fmt: skip

    def is_unknown(self, error):
        return isinstance(error, self._unknown)

    def close(self):
        self._client.shutdown()


class RedisStore:
    """redis-py with asyncio. It has one operation in flight on each connection of its pool."""

    is_async = True
    CONNECTIONS_MAX = 1000

    @classmethod
    async def connect(cls, plan):
        import redis
        from redis import asyncio as aio
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff

        self = cls()
        in_flight = 100 if plan["in_flight"] == "unlimited" else plan["in_flight"]
        timeout_s = plan["timeout_ms"] / 1000
        pool = aio.BlockingConnectionPool.from_url(
            plan["target"],
            max_connections=min(in_flight, cls.CONNECTIONS_MAX),
            timeout=None,
            decode_responses=True,
            socket_connect_timeout=CONNECT_TIMEOUT_S,
            socket_timeout=timeout_s,
            # A command that was sent twice would count once.
            retry=Retry(NoBackoff(), 0),
            **_redis_tls(plan),
        )
        self._client = aio.Redis(connection_pool=pool)
        self._unknown = (redis.ConnectionError, redis.TimeoutError)
        self.client = {"name": "redis-py", "version": redis.__version__}
        self.member = {"version": (await self._client.info("server"))["redis_version"]}
        self.get, self.set, self.delete = self._client.get, self._client.set, self._client.delete
        return self

    def is_unknown(self, error):
        # A connection that could not be made is a ConnectionError too, but then nothing was sent.
        return isinstance(error, self._unknown) and "connecting to" not in str(error)

    async def close(self):
        await self._client.aclose()
