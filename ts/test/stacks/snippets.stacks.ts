import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { docBlocks } from '../doc-blocks.ts';
import { LiveServer } from '../real/live-server.ts';
import { runSnippet } from './environments.ts';

const ADDRESS = 'http://127.0.0.1:21118';

/** The pages with snippets of Python: the environment of each, and what each of its snippets prints. */
const PAGES: readonly (readonly [page: string, environment: string, printed: readonly RegExp[]])[] = [
  ['langchain.md', 'langchain', [/^billing 0\.\d+\n$/, /^billing 0\.\d+\n$/]],
  ['llamaindex.md', 'llamaindex', [/^billing\n$/, /^\d\.\d+ .+\n\d\.\d+ .+\n$/]],
  ['haystack.md', 'haystack', [/^billing 0\.\d+\n$/, /^billing\n$/]],
  ['home-assistant.md', 'home-assistant', [/^billing 0\.\d+\n$/]],
];

suite('the snippets of docs/stacks', () => {
  for (const [page, environment, printed] of PAGES) {
    for (const key of [undefined, 'the-key-of-the-stacks']) {
      test(`${page} print an answer, with the key ${key === undefined ? 'off' : 'on'}`, async (t) => {
        const server = await LiveServer.start(t, key === undefined ? {} : { env: { SVC_API_KEY: key } });
        const blocks = docBlocks(`stacks/${page}`).filter(({ language }) => language === 'python');
        assert.equal(blocks.length, printed.length);
        for (const [index, { text }] of blocks.entries()) {
          const addressed = text.replaceAll(ADDRESS, server.url.origin);
          const program =
            key === undefined
              ? addressed
              : addressed.replaceAll('any-while-the-key-is-off', key).replace('JevClient("",', `JevClient("${key}",`);
          // A client that takes its address or its key from the environment finds both there.
          const env = { TYPESAFE_BASE_URL: server.url.origin, TYPESAFE_API_KEY: key ?? 'any-while-the-key-is-off' };
          const { stdout, stderr } = await runSnippet(environment, program, { env });
          assert.match(stdout, printed[index] ?? /never/, `${program}\n${stderr}`);
        }
      });
    }
  }
});

/** The reasons of a question with one option, and of a body that is too long: one client checks options by itself. */
const REASON = /need at least two options|\(max_body_bytes\)/;

/** Lines whose request is refused, and that print the place where each package has the reason. */
const REASONS: readonly (readonly [name: string, environment: string, program: (origin: string) => string])[] = [
  [
    'langchain-typesafe, in body',
    'langchain',
    (origin) => `
from langchain_typesafe import Choice, TypeSafeClassifier
questions = {"team": Choice(instructions="Which?", criteria={"one": None})}
try:
    TypeSafeClassifier(base_url="${origin}", api_key="k").invoke({"state": "s", "questions": questions})
except Exception as error:
    print(error.body, error.request_id)
`,
  ],
  [
    'langchain-openai, in the message',
    'langchain',
    (origin) => `
from langchain_openai.decisions import Choice, OpenAIDecisions
questions = {"team": Choice(instructions="Which?", choices={"one": None})}
try:
    OpenAIDecisions(model="svc", base_url="${origin}/v1", api_key="k").invoke({"input": "s", "questions": questions})
except Exception as error:
    print(error)
`,
  ],
  [
    'llama-index-selectors-jev, in the message',
    'llamaindex',
    () => `
from llama_index.core.tools.types import ToolMetadata
from llama_index.selectors.jev import JevSingleSelector
try:
    selector = JevSingleSelector(timeout_s=30)
    selector._select([ToolMetadata(name="one", description="x")], __import__("llama_index.core.schema", fromlist=["QueryBundle"]).QueryBundle("s"))
except Exception as error:
    print(error)
`,
  ],
  [
    'typesafe-haystack, in classification_error',
    'haystack',
    (origin) => `
from haystack import Document
from haystack_integrations.components.classifiers.typesafe import TypeSafeDocumentClassifier
questions = {"team": {"type": "choice", "instructions": "Which?", "criteria": {"one": None}}}
classifier = TypeSafeDocumentClassifier(questions, api_base_url="${origin}")
print(classifier.run(documents=[Document(content="s")])["failed_documents"][0].meta["classification_error"])
`,
  ],
  [
    'jevclient, in the message',
    'home-assistant',
    (origin) => `
import asyncio
from jevclient import JevClient, Noul
async def main():
    async with JevClient("", base_url="${origin}") as client:
        try:
            await client.ask("x" * 9 * 2**20, {"refund": Noul("Does the customer want money back?")})
        except Exception as error:
            print(error)
asyncio.run(main())
`,
  ],
];

suite("an error's reason", () => {
  for (const [name, environment, program] of REASONS) {
    test(`is to be had from ${name}`, async (t) => {
      const server = await LiveServer.start(t);
      const env = { TYPESAFE_BASE_URL: server.url.origin, TYPESAFE_API_KEY: 'any-while-the-key-is-off' };
      const { stdout, stderr } = await runSnippet(environment, program(server.url.origin), { env });
      assert.match(stdout, REASON, stderr);
    });
  }
});
