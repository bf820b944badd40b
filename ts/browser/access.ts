/**
 * The operator's password, when it came in the address: it is taken out of the address at once, kept in memory alone,
 * and sent as Basic auth. Without it the browser sends what the operator has typed into its own dialog.
 */

let basic: string | undefined;

/** Takes the password out of the address. */
export function takePassword(): void {
  const url = new URL(location.href);
  const password = url.searchParams.get('password');
  if (password === null) return;
  url.searchParams.delete('password');
  history.replaceState(history.state, '', url);
  // btoa takes bytes; the header carries UTF-8.
  const bytes = new TextEncoder().encode(`operator:${password}`);
  basic = `Basic ${btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))}`;
  tellBrowser(password);
}

/**
 * Lets the browser itself know the password, as if it had been typed into the dialog, so that links to the other pages
 * work. Only this old way of asking does that; where it does not, the dialog comes.
 */
function tellBrowser(password: string): void {
  const request = new XMLHttpRequest();
  request.open('GET', '/stats', true, 'operator', password);
  request.send();
}

/**
 * Asks the server with the operator's password.
 *
 * @param key - The API key, for a server whose password is off.
 */
export function ask(path: string, init: RequestInit = {}, key?: string): Promise<Response> {
  const headers = new Headers(init.headers);
  const authorization = key ? `Bearer ${key}` : basic;
  if (authorization !== undefined) headers.set('Authorization', authorization);
  return fetch(path, { ...init, headers });
}
