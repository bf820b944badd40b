/** The check of the decision API key. */
import type { Middleware } from 'koa';
import { HttpFailure } from '../../errors.ts';
import type { RequestState } from './request.ts';
import type { WrongGuesses } from './wrong-guesses.ts';

/** A secret that can only be compared with a candidate, in constant time. */
export interface ApiKey {
  matches(candidate: string): boolean;
}

const BEARER = /^Bearer +(\S+) *$/i;

/** Returns the middleware that lets requests with one of `keys` pass; without any keys, it lets all requests pass. */
export function requireApiKey(keys: readonly ApiKey[], guesses: WrongGuesses): Middleware<RequestState> {
  return async (ctx, next) => {
    const token = bearerToken(ctx.req.headers.authorization);
    if (keys.length > 0 && !isOneOf(keys, token)) {
      if (token !== '') await guesses.note(ctx);
      throw new HttpFailure('unauthorized', 'missing or wrong API key', { 'WWW-Authenticate': 'Bearer' });
    }
    await next();
  };
}

function bearerToken(authorization: string | undefined): string {
  return BEARER.exec(authorization ?? '')?.[1] ?? '';
}

/**
 * Whether `candidate` is one of `keys`. It is compared with every key, so that the time does not reveal which one it
 * is.
 */
function isOneOf(keys: readonly ApiKey[], candidate: string): boolean {
  return keys.filter((key) => key.matches(candidate)).length > 0;
}
