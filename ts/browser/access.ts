/**
 * The operator's password, if it came in the address: it is removed from the address at once, kept only in memory, and
 * sent as Basic auth. Without it, the browser sends the password that the operator has typed into the browser's own
 * dialog.
 */

let basic: string | undefined;

/** Takes the password out of the address, if there is one. */
export function takePassword(): void {
  const url = new URL(location.href);
  const password = url.searchParams.get('password');
  if (password === null) return;
  url.searchParams.delete('password');
  history.replaceState(history.state, '', url);
  // btoa takes bytes, and the header carries UTF-8.
  const bytes = new TextEncoder().encode(`operator:${password}`);
  basic = `Basic ${btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))}`;
  tellBrowser(password);
}

/**
 * Makes the password known to the browser itself, as if it had been typed into the dialog, so that links to the other
 * pages work. Only this old kind of request can do that; in browsers where it does not, the dialog appears.
 */
function tellBrowser(password: string): void {
  const request = new XMLHttpRequest();
  request.open('GET', '/stats', true, 'operator', password);
  request.send();
}

/**
 * Sends a request to the server with the operator's password.
 *
 * @param key - The API key, for a server whose password is off.
 */
export function askServer(path: string, init: RequestInit = {}, key?: string): Promise<Response> {
  const headers = new Headers(init.headers);
  const authorization = key ? `Bearer ${key}` : basic;
  if (authorization !== undefined) headers.set('Authorization', authorization);
  return fetch(path, { ...init, headers });
}
