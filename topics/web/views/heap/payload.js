/* The payload of a message: JSON as it was sent, text, or bytes that are neither. */

import { h } from "../../kit/dom.js";
import { bytes } from "../../kit/format.js";
import { jsonView } from "../../kit/json.js";

const PREVIEW_CHARS = 80;

/* The beginning of it, in a line. */
export function preview(message) {
  if ("payload_json" in message) return short(JSON.stringify(message.payload_json));
  const text = asText(message.payload ?? "");
  return text === null ? `${bytes(sizeOf(message.payload))} of bytes` : short(text);
}

/* All of it. */
export function payloadView(message) {
  if ("payload_json" in message) return jsonView(message.payload_json);
  const text = asText(message.payload ?? "");
  if (text !== null) return jsonView(text);
  return h("div", null, h("p", null, `${bytes(sizeOf(message.payload))} that are not text, as base64:`), jsonView(message.payload));
}

/* A text as the server takes payloads. */
export function asBase64(text) {
  const octets = new TextEncoder().encode(text);
  let binary = "";
  for (const octet of octets) binary += String.fromCharCode(octet);
  return btoa(binary);
}

/* The text that base64 stands for; null when it stands for no text. */
function asText(base64) {
  try {
    const octets = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    return new TextDecoder("utf-8", { fatal: true }).decode(octets);
  } catch {
    return null;
  }
}

function sizeOf(base64) {
  const padding = base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0;
  return (base64.length / 4) * 3 - padding;
}

function short(text) {
  return text.length > PREVIEW_CHARS ? `${text.slice(0, PREVIEW_CHARS)}…` : text;
}
