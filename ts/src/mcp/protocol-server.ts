/** A server of the Model Context Protocol with the tools, for one connection or one request. */
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import {
  CallToolRequestSchema,
  type CallToolResult,
  ErrorCode,
  type Tool as ListedTool,
  ListToolsRequestSchema,
  McpError,
} from '@modelcontextprotocol/sdk/types.js';
import { packageVersion } from '../version.ts';
import { type Decide, NoDecision } from './decider.ts';
import { type Arguments, faultOf, TOOLS, type Tool } from './tools.ts';

const INSTRUCTIONS =
  'These tools let a small local model decide about a text: quickly, without generating text, and with calibrated ' +
  'probabilities. Ask several questions about one text with one call of decide. Treat an answer with a confidence below 0.6 as ' +
  'unsettled.';

/** A decision changes nothing, depends only on its request, and reaches nothing else. */
const ANNOTATIONS = { readOnlyHint: true, idempotentHint: true, openWorldHint: false };

/**
 * Returns a server that is connected to nothing yet. The SDK recommends its higher class, which takes schemas of
 * another library; the tools have JSON schemas.
 */
export function createProtocolServer(decide: Decide): Server {
  const server = new Server(
    { name: 'svc', version: packageVersion() },
    { capabilities: { tools: {} }, instructions: INSTRUCTIONS },
  );
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: TOOLS.map(listed) }));
  server.setRequestHandler(CallToolRequestSchema, ({ params }, { signal }) => {
    const tool = TOOLS.find(({ name }) => name === params.name);
    if (tool === undefined) throw new McpError(ErrorCode.InvalidParams, `there is no tool ${params.name}`);
    return call(tool, { args: params.arguments ?? {}, decide, signal });
  });
  return server;
}

function listed({ name, title, description, inputSchema, outputSchema }: Tool): ListedTool {
  const schemas = { inputSchema, outputSchema } as Pick<ListedTool, 'inputSchema' | 'outputSchema'>;
  return { name, title, description, ...schemas, annotations: { title, ...ANNOTATIONS } };
}

interface Call {
  readonly args: Arguments;
  readonly decide: Decide;
  readonly signal: AbortSignal;
}

/** Returns the result of a call; a fault is a result too, so that the model that has asked reads it. */
async function call(tool: Tool, { args, decide, signal }: Call): Promise<CallToolResult> {
  const fault = faultOf(tool, args);
  if (fault !== undefined) return failed(fault);
  try {
    const result = tool.result(await decide(tool.request(args), signal), args);
    return { content: [{ type: 'text', text: JSON.stringify(result) }], structuredContent: result };
  } catch (error) {
    if (error instanceof NoDecision) return failed(error.message);
    throw error;
  }
}

function failed(text: string): CallToolResult {
  return { content: [{ type: 'text', text }], isError: true };
}
