"""The frozen schema and golden frames of ``protocol/``, shared with the agent's own tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fourwalls.guest import errors, frame, messages, shim
from fourwalls.guest.frame import FrameDecoder, Kind
from fourwalls.guest.messages import Message

PROTOCOL = Path(__file__).resolve().parents[3] / "protocol"
SCHEMA: dict[str, Any] = json.loads((PROTOCOL / "gen-1.json").read_text())
GOLDEN: list[dict[str, Any]] = json.loads((PROTOCOL / "golden-1.json").read_text())

BODIES: dict[str, type[Message]] = {
    "HELLO": messages.Hello,
    "CREDIT": messages.Credit,
    "EXEC_START": messages.ExecStart,
    "EXEC_ATTACH": messages.ExecAttach,
    "EXEC_INPUT": messages.ExecInput,
    "EXEC_CLOSE_STDIN": messages.ExecCloseStdin,
    "EXEC_RESIZE": messages.ExecResize,
    "EXEC_SIGNAL": messages.ExecSignal,
    "EXEC_LIST": messages.ExecList,
    "FILE_STAT": messages.FileStat,
    "FILE_LIST": messages.FileList,
    "FILE_READ": messages.FileRead,
    "FILE_WRITE": messages.FileWrite,
    "FILE_MKDIR": messages.FileMkdir,
    "FILE_MOVE": messages.FileMove,
    "FILE_REMOVE": messages.FileRemove,
    "FILE_CHANGE": messages.FileChange,
    "FILE_WATCH": messages.FileWatch,
    "TUNNEL_DIAL": messages.TunnelDial,
    "METRICS": messages.MetricsRequest,
    "SHUTDOWN": messages.Shutdown,
    "HELLO_OK": messages.HelloOk,
    "ERROR": messages.Error,
    "STARTED": messages.Started,
    "EXIT": messages.Exit,
    "ENTRIES": messages.Entries,
    "EVENTS": messages.Events,
    "STARTED_READ": messages.StartedRead,
}
TYPES: dict[str, type[Message]] = {
    "Limits": messages.HelloLimits,
    "PtySize": messages.PtySize,
    "Event": messages.WatchEvent,
    "ProcessList": messages.ProcessList,
    "Process": messages.Process,
    "Entry": messages.Entry,
    "MkdirResult": messages.MkdirResult,
    "RemoveResult": messages.RemoveResult,
    "Metrics": messages.Metrics,
}
RESULTS = {
    "result_process_list": messages.ProcessList,
    "result_entry": messages.Entry,
    "result_entry_symlink": messages.Entry,
    "result_mkdir": messages.MkdirResult,
    "result_remove": messages.RemoveResult,
    "result_metrics": messages.Metrics,
}


def _fields(message: type[Message]) -> list[str]:
    return [field.encode_name for field in msgspec.structs.fields(message)]


def test_kinds_and_limits_are_those_of_the_schema() -> None:
    shim_only = {kind for kind in Kind if kind >= 0xF0}
    assert {k["name"]: k["kind"] for k in SCHEMA["kinds"]} == {
        kind.name: int(kind) for kind in Kind if kind not in shim_only
    }
    for kind in SCHEMA["kinds"]:
        assert (kind["kind"] in frame.TO_AGENT) == ("to_agent" in kind["directions"])
        assert (kind["kind"] in frame.TO_HOST) == ("to_host" in kind["directions"])
    assert SCHEMA["limits"] == {
        "body_to_agent": frame.MAX_BODY_TO_AGENT,
        "body_to_host": frame.MAX_BODY_TO_HOST,
        "data_payload": frame.MAX_PAYLOAD,
        "entries": messages.MAX_ENTRIES_PER_FRAME,
    }
    assert SCHEMA["generation"] == messages.GENERATION
    assert set(SCHEMA["error_codes"]) == errors.CODES


@pytest.mark.parametrize("kind", [k for k in SCHEMA["kinds"] if k["body"] == "map"], ids=str)
def test_fields_of_bodies(kind: dict[str, Any]) -> None:
    assert _fields(BODIES[kind["name"]]) == list(kind["fields"])


@pytest.mark.parametrize("name", SCHEMA["types"])
def test_fields_of_types(name: str) -> None:
    assert _fields(TYPES[name]) == list(SCHEMA["types"][name])


def _plain(value: Any) -> Any:
    """Golden bodies write bytes as ``{"$bin": hex}``."""
    if isinstance(value, dict):
        if set(value) == {"$bin"}:
            return bytes.fromhex(value["$bin"])
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda g: g["name"])
def test_golden_frames_decode_and_encode_identically(golden: dict[str, Any]) -> None:
    raw = bytes.fromhex(golden["hex"])
    to_agent = golden["direction"] == "to_agent"
    decoder = FrameDecoder(
        frame.MAX_BODY_TO_AGENT if to_agent else frame.MAX_BODY_TO_HOST,
        frame.TO_AGENT if to_agent else frame.TO_HOST,
    )
    ((kind, channel, stream, body),) = list(decoder.feed(raw))
    assert (kind, channel, stream) == (golden["kind"], golden["channel"], golden["stream"])
    if kind == Kind.DATA:
        offset, payload = frame.split_data(body)
        expected = _plain(golden["body"])
        assert {"offset": offset, "payload": bytes(payload)} == expected
        header = frame.encode_data_header(stream, channel, offset, len(payload))
        assert header + payload == raw
    elif golden["body"] is None:
        assert not body
        assert frame.encode_frame(kind, stream, b"", channel) == raw
    else:
        message = RESULTS[golden["name"]] if kind == Kind.RESULT else BODIES[Kind(kind).name]
        decoded = messages.decode(body, message)
        assert msgspec.msgpack.decode(messages.encode(decoded)) == _plain(golden["body"])
        assert frame.encode_frame(kind, stream, messages.encode(decoded), channel) == raw


def test_unknown_keys_are_ignored_and_missing_ones_have_defaults() -> None:
    body = msgspec.msgpack.encode({"code": 3, "of_generation_2": [1, {"x": b""}]})
    assert messages.decode(body, messages.Exit) == messages.Exit(code=3)
    assert messages.decode(msgspec.msgpack.encode({}), shim.Gone).record().cause.value == "unknown"
