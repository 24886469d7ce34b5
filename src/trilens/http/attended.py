"""`AttendedRoute`: a route whose request is cancelled when its client disconnects."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

CLIENT_LEFT = 499  # in metrics; nobody receives it


class AttendedRoute(APIRoute):
    """A route for work that is worth nothing without its client, such as a search."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler of the route, which runs until its client has left."""
        handle = super().get_route_handler()

        async def attend(request: Request) -> Response:
            try:
                await request.body()  # so that the next message is the disconnect
            except ClientDisconnect:
                return Response(status_code=CLIENT_LEFT)
            answering = asyncio.ensure_future(handle(request))
            leaving = asyncio.ensure_future(_disconnect(request))
            try:
                await asyncio.wait((answering, leaving), return_when=asyncio.FIRST_COMPLETED)
                return answering.result() if answering.done() else Response(status_code=CLIENT_LEFT)
            finally:
                answering.cancel()
                leaving.cancel()

        return attend


async def _disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
