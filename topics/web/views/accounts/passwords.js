/* A new password, typed twice. */

const EXPECTED = "10 to 256 characters, at least 4 different ones.";

export function newPasswordFields(name, label) {
  const field = { kind: "password", required: true, autocomplete: "new-password" };
  return [
    { ...field, name, label, hint: EXPECTED },
    { ...field, name: "again", label: `${label} again` },
  ];
}

/* The password that was typed twice; an error beside the second one when it is another. */
export function chosenPassword(values, name) {
  if (values[name] === values.again) return values[name];
  throw Object.assign(new Error("The two passwords are not the same."), { detail: { field: "again" } });
}
