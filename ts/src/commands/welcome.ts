/** The lines for a person whose terminal a server has just started on: where it is, and what to try. */
import type { Serving } from '../server/run.ts';
import type { Environment } from '../settings/config.ts';

/** Returns the lines; their order is that in which a newcomer needs them. */
export function welcome({ url, needsKey, needsPassword }: Serving, env: Environment): readonly string[] {
  const own = url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:');
  const key = needsKey ? 'SVC_API_KEY=... ' : '';
  const asked = `--state 'I was charged twice.' --question 'Does the customer want money back?'`;
  return [
    `try in another terminal: ${key}${programName(env)} ask --url ${own} ${asked}`,
    `try in a browser: ${own}/docs for every route, ${own}/ for the dashboard${needsPassword ? ' and its password' : ''}`,
    'Ctrl-C ends the server',
  ];
}

/** Returns a command that starts this program again where the person is, as far as npm says. */
export function programName({ npm_command, npm_package_name }: Environment): string {
  if (npm_command !== 'exec' && npm_command !== 'start') return 'svc';
  return npm_command === 'start' && npm_package_name === '@svc/server' ? 'node bin/svc.js' : 'npx @svc/server';
}
