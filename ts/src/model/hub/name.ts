/** The name of a model at a hub, such as `hf:org/name@v2/onnx`. */
import { Refusal } from '../../refusal.ts';
import { FolderNames } from '../folder-names.ts';
import { reason } from '../source-error.ts';

/** A model in a repository of a hub, at one of its revisions. */
export interface HubName {
  /** The repository, such as `org/name`. */
  readonly repository: string;
  /** The branch, tag or commit; `main` where none is named. */
  readonly revision: string;
  /** The folder of the model in the repository, with `/` between its parts; empty for the repository itself. */
  readonly folder: string;
}

const DEFAULT_REVISION = 'main';
/** `refs/pr/7` is the only revision whose slashes are written as they are; in others they are written `%2F`. */
const FORM = /^hf:(?<repository>[^/@]+\/[^/@]+)(?:@(?<revision>refs\/pr\/\d+|[^/]+))?(?:\/(?<folder>.*))?$/is;
/** A part of a repository's name, by the hub's own rules. */
const PART = /^\w(?:[\w.-]{0,94}\w)?$/;
const REVISION = /^[\w+-][\w.+-]*(?:\/[\w+-][\w.+-]*)*$/;
const COMMIT = /^[0-9a-f]{40}$/;

/** Whether a `model` is meant to be a name at a hub. */
export function isHubName(model: string): boolean {
  return /^hf:/i.test(model);
}

/** Whether a revision is a commit, which never changes. */
export function isCommit(revision: string): boolean {
  return COMMIT.test(revision);
}

/**
 * Returns the parts of a model's name.
 *
 * @throws Refusal when it is no name that a hub can have.
 */
export function parseHubName(model: string): HubName {
  const { repository = '', revision = DEFAULT_REVISION, folder = '' } = FORM.exec(model)?.groups ?? {};
  const refuse = (problem: string) => new Refusal(`model: ${model}: ${problem}`);
  if (!isRepository(repository)) {
    throw refuse('must be hf:org/name, hf:org/name@revision or hf:org/name/folder');
  }
  const name = { repository, revision: decoded(revision), folder: folder.replace(/\/+$/, '') };
  if (!REVISION.test(name.revision) || name.revision.includes('..') || name.revision.length > 255) {
    throw refuse(`${JSON.stringify(name.revision)} can be no revision`);
  }
  if (name.folder.includes('@')) throw refuse('a revision stands behind the name: hf:org/name@revision/folder');
  try {
    if (name.folder !== '') new FolderNames().add(name.folder, 'folder');
  } catch (error) {
    throw refuse(reason(error));
  }
  return name;
}

/** Whether a name says which revision it means. */
export function namesRevision(model: string): boolean {
  const { revision } = FORM.exec(model)?.groups ?? {};
  return revision !== undefined;
}

/** The public hub's own hosts. */
const PUBLIC_HOST = /^(?:https?:\/\/)?(?:www\.)?(?:huggingface\.co|hf\.co)\//i;

/**
 * Returns the name of the model that is meant by the address of its page, or of a folder or file there, at the public
 * hub; undefined for any other text.
 */
export function hubNameOfPage(text: string): string | undefined {
  const path = PUBLIC_HOST.test(text) ? text.replace(PUBLIC_HOST, '').replace(/[?#].*$/s, '') : '';
  const [org = '', name = '', view, revision = '', ...rest] = path.split('/').filter((part) => part !== '');
  if (/^(datasets|spaces|docs|api)$/i.test(org) || (view !== undefined && !/^(tree|blob|resolve)$/.test(view)))
    return undefined;
  const at = ['', 'main'].includes(revision) ? '' : `@${revision}`;
  const folder = (view === 'tree' ? rest : rest.slice(0, -1)).map((part) => `/${part}`).join('');
  return hubNameIn(`${org}/${name}${at}${folder}`);
}

/** Returns `text` with `hf:` in front if that is a name that a hub can have; undefined otherwise. */
export function hubNameIn(text: string): string | undefined {
  try {
    parseHubName(`hf:${text}`);
    return `hf:${text}`;
  } catch {
    return undefined;
  }
}

/** Returns the name of a model at a commit, which stands for the same files for ever. */
export function atCommit({ repository, folder }: HubName, commit: string): string {
  return `hf:${repository}@${commit}${folder === '' ? '' : `/${folder}`}`;
}

/** Returns the path of a model's file from the repository on. */
export function pathInRepository({ folder }: Pick<HubName, 'folder'>, path: string): string {
  return folder === '' ? path : `${folder}/${path}`;
}

function isRepository(repository: string): boolean {
  const parts = repository.split('/');
  return (
    parts.every((part) => PART.test(part) && !/--|\.\./.test(part)) && !/\.git$/.test(repository) && parts.length === 2
  );
}

function decoded(revision: string): string {
  try {
    return decodeURIComponent(revision);
  } catch {
    return revision;
  }
}
