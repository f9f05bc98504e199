// A link carries the token behind its #, which no server and no log ever sees.
const token = new URLSearchParams(location.hash.slice(1)).get("token");
if (token) {
  history.replaceState(null, "", location.pathname);
  const input = document.getElementById("token");
  input.value = token;
  input.form.requestSubmit();
}
