/* The theme that was chosen, set before anything is drawn so that nothing flashes. `frame/theme.js` changes it. */
{
  const chosen = localStorage.getItem("topics-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
}
