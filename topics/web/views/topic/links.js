/* Where a topic is looked at, by what it is. */

import { h } from "../../kit/dom.js";

export function topicPath(topic) {
  return `/topics/${encodeURIComponent(topic)}`;
}

export function queuePath(queue) {
  return `/queues/${encodeURIComponent(queue)}`;
}

export function topicLink(topic) {
  return link(topicPath(topic), topic);
}

export function queueLink(queue) {
  return link(queuePath(queue), queue);
}

function link(href, name) {
  return h("a", { href, class: "topic-name", title: name }, name);
}
