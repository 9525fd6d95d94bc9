"""What somebody writes who knows `wasi:http`."""

from urllib.parse import urlsplit

import wit_world
from componentize_py_types import Err, Ok
from wit_world.imports import outgoing_handler
from wit_world.imports.types import Fields, IncomingBody, OutgoingRequest


class WitWorld(wit_world.WitWorld):
    def visit(self, url: str) -> str:
        parts = urlsplit(url)
        request = OutgoingRequest(Fields())
        request.set_authority(parts.netloc)
        request.set_path_with_query(parts.path)
        try:
            future = outgoing_handler.handle(request, None)
            future.subscribe().block()
            answer = future.get()
            if isinstance(answer.value, Err):
                raise answer.value
            response = answer.value.value
        except Err as error:
            raise Err(str(error.value))
        if isinstance(response, Err):
            raise Err(str(response.value))
        body = response.consume()
        text = b""
        with body.stream() as stream:
            while True:
                try:
                    text += stream.blocking_read(65536)
                except Err:
                    break
        return f"{response.status()} {text.decode()}"
