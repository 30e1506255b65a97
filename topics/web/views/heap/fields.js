/* What can be said about a heap: the fields of its forms, and what the server is told of them. */

const SECOND_MS = 1000;

/* Fields that can be changed at any time; `config` is the heap as it is, if there is one. */
export function tuning(config = {}) {
  return [
    {
      name: "visibility_timeout_default",
      label: "Lease",
      kind: "duration",
      value: ms(config.visibility_timeout_default),
      hint: "How long a consumer has a message before it goes back, unless it asks for another time.",
    },
    {
      name: "max_retries_default",
      label: "Retries",
      kind: "number",
      min: 0,
      step: 1,
      value: config.max_retries_default,
      hint: "How often a message may fail and be tried again before it is a dead letter.",
    },
    {
      name: "retention_time",
      label: "Retention of dead letters",
      kind: "duration",
      value: ms(config.retention_time),
      hint: "How long dead letters are kept; 0 is for ever. Messages that are not done never expire.",
    },
    { name: "max_payload_bytes", label: "Largest payload", kind: "bytes", min: 1, value: config.max_payload_bytes },
    { name: "compression_enabled", label: "Clients may compress", kind: "flag", value: config.compression_enabled },
    "Dead letters",
    { name: "dlq_enabled", label: "Keep messages that failed too often", kind: "flag", value: config.dlq_policy?.enabled ?? true },
    {
      name: "dlq_retention",
      label: "For how long",
      kind: "duration",
      value: ms(config.dlq_policy?.retention_time),
      hint: "How long dead letters are kept instead of the retention above; 0 is as it says.",
    },
  ];
}

/* The values of such a form as the server takes them; what was left empty is left out. */
export function toldOf(values) {
  const { dlq_enabled: enabled, dlq_retention: retention, ...rest } = values;
  const told = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== null && value !== ""));
  for (const name of ["visibility_timeout_default", "retention_time"]) if (name in told) told[name] /= SECOND_MS;
  told.dlq_policy = { enabled };
  if (retention !== null) told.dlq_policy.retention_time = retention / SECOND_MS;
  return told;
}

function ms(seconds) {
  return seconds === undefined ? undefined : Math.round(seconds * SECOND_MS);
}
