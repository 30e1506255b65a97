/* One message of a heap, and what can be done to it: another priority, taking it back, giving it up. */

import { api, at } from "../../kit/api.js";
import { confirm, dialog } from "../../kit/dialog.js";
import { h } from "../../kit/dom.js";
import { facts } from "../../kit/facts.js";
import { form } from "../../kit/form.js";
import { when } from "../../kit/format.js";
import { badge, button } from "../../kit/state.js";
import { toast } from "../../kit/toast.js";
import { payloadView } from "./payload.js";

const STATE_KINDS = { ready: "ok", leased: "info", delayed: "warning", leaving: "warning", dead: "bad" };

export function stateBadge(state) {
  return badge(state, STATE_KINDS[state] ?? "quiet");
}

/* `changed` is called when something was done. */
export function showMessage(message, me, changed) {
  const free = !message.is_leased && me.may("write");
  return dialog({
    title: "Message",
    wide: true,
    body: (close) => {
      const act = (work) => async () => {
        const said = await work(message);
        if (!said) return;
        close();
        toast(said);
        changed();
      };
      return h(
        "div",
        null,
        facts([
          ["Id", h("code", null, message.message_id)],
          ["State", stateBadge(message.state)],
          ["Priority", String(message.priority)],
          ["Partition", String(message.partition_id)],
          ["Enqueued", when(Date.parse(message.enqueued_time))],
          ["Attempts", `${message.attempts} of ${message.max_retries + 1}`],
          message.lease_deadline && ["Leased until", when(Date.parse(message.lease_deadline))],
          message.not_before && ["Not before", when(Date.parse(message.not_before))],
          message.producer_id && ["Producer", `${message.producer_id}, epoch ${message.epoch}, sequence ${message.sequence}`],
        ]),
        h("h3", null, "Payload"),
        payloadView(message),
        message.meta && [h("h3", null, "Meta"), payloadView({ payload_json: message.meta })],
        message.is_leased && h("p", { class: "note" }, "A consumer has it: it cannot be changed before it comes back."),
        free &&
          h(
            "div",
            { class: "dialog-actions" },
            button("Reprioritise", act(reprioritise), { name: "sort" }),
            button("Move to dead letters", act(giveUp), { name: "dead" }),
            button("Cancel message", act(cancel), { kind: "danger", name: "delete" }),
          ),
      );
    },
  });
}

/* These give what was done in words, or null. */

function reprioritise(message) {
  return dialog({
    title: "Another priority",
    body: (close) =>
      form({
        submit: "Change it",
        cancel: () => close(),
        fields: [{ name: "priority", label: "Priority", value: String(message.priority), required: true, autofocus: true }],
        onSubmit: async ({ priority }) => {
          const body = { message_id: message.message_id, priority: priority.trim() };
          const { old_priority: before } = await api.post(at`/v1/heaps/${message.topic}/reprioritize`, body);
          close(`Its priority is ${priority.trim()}, and was ${before}.`);
        },
      }),
  });
}

function giveUp(message) {
  return dialog({
    title: "Move to dead letters",
    body: (close) =>
      form({
        submit: "Move it",
        kind: "danger",
        cancel: () => close(),
        fields: [{ name: "reason", label: "Why", autofocus: true, hint: "It stands beside the dead letter." }],
        onSubmit: async ({ reason }) => {
          const body = { message_id: message.message_id, reason };
          const { dlq_topic: place } = await api.post(at`/v1/heaps/${message.topic}/move_to_dlq`, body);
          close(`It is in ${place} now.`);
        },
      }),
  });
}

async function cancel(message) {
  const sure = await confirm({
    title: "Cancel this message?",
    body: "It is deleted, and nobody will get it. This cannot be undone.",
    action: "Cancel message",
    danger: true,
  });
  if (!sure) return null;
  try {
    await api.post(at`/v1/heaps/${message.topic}/cancel`, { message_id: message.message_id });
  } catch (error) {
    toast(error.message, { kind: "bad" });
    return null;
  }
  return "The message is gone.";
}
