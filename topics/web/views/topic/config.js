/* The config of a topic as fields of a form: grouped, each with what it means, and only those that mean something for its
 * type. `fresh` is for a topic that is about to be made: it chooses what never changes afterwards as well. */

const NEVER = "0 is never.";
const NO_BOUND = "0 is no bound.";

const DURABILITY = [
  { value: "ephemeral", label: "ephemeral – in memory, gone with the process" },
  { value: "memory", label: "memory – answered before it is on disk" },
  { value: "disk", label: "disk – survives a crash of the process" },
  { value: "fsync", label: "fsync – survives a loss of power" },
];
const DISCARD = [
  { value: "old", label: "old – the oldest records go" },
  { value: "reject", label: "reject – writes are refused" },
];
const MODE = [
  { value: "min", label: "min – the lowest priority comes first" },
  { value: "max", label: "max – the highest priority comes first" },
];

export const TYPES = [
  { value: "log", label: "log – records, read by cursor" },
  { value: "queue", label: "queue – jobs, each done by one worker" },
  { value: "heap", label: "heap – jobs by priority" },
];

/* Groups of fields. `of`: the types that have it. `fixed`: chosen once, when the topic is made. */
const GROUPS = [
  {
    title: "What it is",
    fields: [
      { name: "partitions", label: "Partitions", kind: "number", min: 1, fixed: true, hint: "Seqs and order are those of a partition. This never changes." },
      { name: "mode", label: "Order", kind: "select", options: MODE, of: ["heap"], fixed: true, hint: "This never changes." },
      { name: "alias", label: "Alias", kind: "text", hint: "Another name for it, good wherever a name is." },
    ],
  },
  {
    title: "How safe a write is",
    fields: [{ name: "durability", label: "Durability", kind: "select", options: DURABILITY, hint: "When a write is answered, and what it survives." }],
  },
  {
    title: "How long records stay",
    fields: [
      { name: "ttl_ms", label: "Time to live", kind: "duration", min: 0, hint: `Older records go. ${NEVER}` },
      { name: "cap_records", label: "Records at most", kind: "number", min: 0, hint: `In each partition. ${NO_BOUND}` },
      { name: "cap_bytes", label: "Bytes at most", kind: "bytes", min: 0, hint: `Data and meta, in each partition. ${NO_BOUND}` },
      { name: "discard", label: "When it is full", kind: "select", options: DISCARD },
      { name: "protect_unarchived", label: "Wait for archives", kind: "flag", hint: "What no archive has yet is not taken." },
      { name: "protect_groups", label: "Wait for groups", kind: "tags", hint: "What these groups have not acked is not taken." },
      { name: "protect_max_bytes", label: "Wait up to", kind: "bytes", min: 1, hint: "When a partition holds more, it waits for nobody." },
    ],
  },
  {
    title: "Jobs",
    of: ["queue"],
    fields: [
      { name: "lease_ms", label: "A lease lasts", kind: "duration", min: 0, hint: "Then somebody else can have the job. 100 ms to 1 day." },
      { name: "max_deliveries", label: "Deliveries at most", kind: "number", min: 0, hint: `After so many a job is a dead letter. ${NO_BOUND}` },
      { name: "dead_letter", label: "Dead letters go to", kind: "text", hint: "A topic. Without one, jobs are tried for ever." },
      { name: "claim_jitter_ms", label: "Gather claims for", kind: "duration", min: 0, hint: "So that several workers share what is ready. 0 is not at all." },
      { name: "leases_durable", label: "Leases survive a crash", kind: "flag", hint: "Otherwise jobs in hand may be handed out again after one." },
    ],
  },
  {
    title: "Messages",
    of: ["heap"],
    fields: [
      { name: "lease_ms", label: "A lease lasts", kind: "duration", min: 0, hint: "Then somebody else can have the message." },
      { name: "max_retries", label: "Retries at most", kind: "number", min: 0, hint: "After so many a message is a dead letter." },
      { name: "top_k_bound", label: "How far from the best", kind: "number", min: 1, hint: "With several partitions, a pop is among so many best." },
      { name: "max_payload_bytes", label: "A message at most", kind: "bytes", min: 1 },
      { name: "retention_ms", label: "Dead letters are kept", kind: "duration", min: 0, hint: "0 is for ever." },
      { name: "compression", label: "Clients may compress", kind: "flag" },
    ],
  },
  {
    title: "Writing and reading",
    fields: [
      { name: "auto_create", label: "A write may create it", kind: "flag" },
      { name: "idempotency_window_ms", label: "Keys are remembered", kind: "duration", min: 0, hint: "A write that is repeated within this time is done once." },
      { name: "dedupe_node", label: "Readers may leave out their own", kind: "flag", hint: "By the node they wrote with." },
      { name: "visibility_ms", label: "A consumer has records for", kind: "duration", min: 0, hint: "Of a group. 0 is what the server is set to." },
      { name: "priority", label: "Priority", kind: "number", min: -1000, max: 1000, hint: "Whose readers are served first. Empty is by how it is read." },
      { name: "auto_priority", label: "Priority follows reads", kind: "flag" },
    ],
  },
];

/* The fields for a type with these values, headings between them. */
export function configFields(type, values, { fresh = false } = {}) {
  const isOf = (each) => !each.of || each.of.includes(type);
  const found = [];
  for (const group of GROUPS.filter(isOf)) {
    const fields = group.fields.filter((field) => isOf(field) && (fresh || !field.fixed) && (fresh || field.name in values));
    if (fields.length > 0) found.push(group.title, ...fields.map(({ of, fixed, ...field }) => ({ ...field, value: values[field.name] })));
  }
  return found;
}

/* What differs from how it was. An empty text means that there is none. */
export function changed(before, values) {
  const found = {};
  for (const [name, value] of Object.entries(values)) {
    const now = value === "" ? null : value;
    if (JSON.stringify(now) !== JSON.stringify(before[name] ?? null)) found[name] = now;
  }
  return found;
}
