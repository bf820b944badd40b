/** The checks of a start that are about several settings at once, for those who want to know before a start. */
import { type Config, isPublishedPassword, processEnvironment } from './config.ts';
import { requireContainerCredentials } from './container.ts';
import { resolveApiKeys, resolvePassword } from './credentials.ts';

/**
 * Checks the credentials as a start does, without making any, and returns the warnings about them, one line each.
 *
 * @throws Refusal with which a server with these settings would end.
 */
export function requireServable(config: Config, env = processEnvironment()): readonly string[] {
  if (config.isContainer) requireContainerCredentials(config, isPublishedPassword(env));
  const options = { create: false };
  return [resolveApiKeys(config, options), resolvePassword(config, options)].flatMap(({ warnings }) => warnings);
}
