/* What a browser calls itself, as people say it. The whole text is long, and mostly about browsers of long ago. */

const BROWSERS = [
  [/\bEdg\//, "Edge"],
  [/\bOPR\//, "Opera"],
  [/\bFirefox\//, "Firefox"],
  [/\b(?:Headless)?Chrom(?:e|ium)\//, "Chrome"],
  [/\bSafari\//, "Safari"],
  [/\bcurl\//, "curl"],
];
const SYSTEMS = [
  [/\bAndroid\b/, "Android"],
  [/\b(?:iPhone|iPad)\b/, "iOS"],
  [/\bWindows\b/, "Windows"],
  [/\bMac OS X\b/, "macOS"],
  [/\bLinux\b/, "Linux"],
];
const CHARS_MAX = 40;

export function browserOf(agent) {
  const browser = first(BROWSERS, agent);
  const system = first(SYSTEMS, agent);
  if (browser) return system ? `${browser} on ${system}` : browser;
  if (!agent) return "unknown";
  return agent.length > CHARS_MAX ? `${agent.slice(0, CHARS_MAX)}…` : agent;
}

function first(known, agent) {
  return known.find(([pattern]) => pattern.test(agent))?.[1];
}
