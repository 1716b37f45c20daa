import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';

// oxlint-disable-next-line typescript/no-explicit-any
type Document = any;

interface GivenAnswer {
  readonly status: number;
  /** The Content-Type; empty where there is none. */
  readonly type: string;
  readonly text: string;
}

const PROBLEM_TYPE = 'application/problem+json';
/** Addresses under /api that give the document and its pages, and so are not in it. */
const OF_THE_DOCUMENT = /^\/api\/(?:openapi\.json|docs)(?:\/|$)/;
/** What may be answered at an address that is none, or to a method that it does not take. */
const REFUSALS: readonly number[] = [400, 401, 404, 405, 414, 503];

const known = new Map<string, DocumentedAnswers>();

/**
 * Holds answers of the admin API against the OpenAPI document that it gives: their status, their content type and their members. A problem's
 * code must be named by its status. Answers may gain members for clients, and here none that the document does not name: but for those of a problem,
 * which its error gives.
 */
export class DocumentedAnswers {
  readonly #document: Document;
  readonly #ajv = new Ajv2020({ strict: false, allErrors: true });
  readonly #validators = new Map<string, ValidateFunction>();

  constructor(document: Document) {
    this.#document = document;
    formats.default(this.#ajv);
    this.#ajv.addSchema({ ...closed(document), $id: 'openapi' });
  }

  static async of(url: string): Promise<DocumentedAnswers> {
    const response = await fetch(`${url}/api/openapi.json`);
    const text = await response.text();
    if (!response.ok) throw new Error(`The document was not given: ${response.status} ${text}`);
    const answers = known.get(text) ?? new DocumentedAnswers(JSON.parse(text));
    known.set(text, answers);
    return answers;
  }

  /** Throws for an answer that the document does not allow. */
  check(method: string, address: string, answer: GivenAnswer): void {
    const { pathname } = new URL(address, 'http://x');
    // HEAD is answered as GET is, without the body.
    const verb = method === 'HEAD' ? 'get' : method.toLowerCase();
    const path = this.#find(pathname);
    const operation = path === undefined ? undefined : this.#document.paths[path][verb];
    const call = `${method} ${path ?? pathname}`;
    const type = answer.type.split(';')[0]!;
    if (!operation) {
      if (type === PROBLEM_TYPE) this.#checkProblem(call, answer);
      else if (pathname.startsWith('/api/') && !OF_THE_DOCUMENT.test(pathname)) throw undocumented(call, answer);
      if (pathname.startsWith('/api/') && answer.status >= 400 && !REFUSALS.includes(answer.status))
        throw undocumented(call, answer);
      return;
    }
    const response = operation.responses[answer.status];
    if (!response || (response.content ? !response.content[type] : answer.text !== '')) throw undocumented(call, answer);
    if (type === PROBLEM_TYPE && method !== 'HEAD') this.#checkProblem(call, answer, response.description);
    if (method === 'HEAD' || !type.endsWith('/json')) return;
    this.#validate(call, ['paths', path!, verb, 'responses', String(answer.status), 'content', type, 'schema'], answer.text);
  }

  /** The path of the document that an address belongs to: the one that is written so, before those with parameters. */
  #find(pathname: string): string | undefined {
    const address = pathname.replace(/(?<=.)\/$/, '');
    if (this.#document.paths[address]) return address;
    return Object.keys(this.#document.paths).find((template) =>
      new RegExp(`^${template.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(address),
    );
  }

  #checkProblem(call: string, answer: GivenAnswer, description?: string): void {
    this.#validate(call, ['components', 'schemas', 'Problem'], answer.text);
    const { code, status } = JSON.parse(answer.text) as { code: string; status: number };
    if (status !== answer.status) throw new Error(`${call} answered ${answer.status} with a problem that says ${status}.`);
    if (description !== undefined && !description.includes(`\`${code}\``))
      throw new Error(`The document names no ${code} among the problems of ${call} with ${status}.`);
  }

  #validate(call: string, pointer: readonly string[], text: string): void {
    const parts = pointer.map((part) => encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1')));
    const $ref = `openapi#/${parts.join('/')}`;
    const validate = this.#validators.get($ref) ?? this.#ajv.compile({ $ref });
    this.#validators.set($ref, validate);
    if (!validate(JSON.parse(text)))
      throw new Error(`The document does not allow this answer of ${call}: ${this.#ajv.errorsText(validate.errors)}`);
  }
}

/** A `fetch` of paths of the server at `url`, which throws for an answer that the server's document does not allow. */
export function documentedFetch(url: () => string): (path: string, init?: RequestInit) => Promise<Response> {
  let reading: Promise<DocumentedAnswers> | undefined;
  // Calls that begin together share one read: hundreds of documents at once are more than a server sends.
  const read = () =>
    (reading ??= DocumentedAnswers.of(url()).catch((error: unknown) => {
      reading = undefined;
      throw error;
    }));
  return async (path, init = {}) => {
    // Before the call, so that whatever fails then was not answered.
    const documented = await read();
    const response = await fetch(url() + path, init);
    const type = response.headers.get('content-type') ?? '';
    // A stream has no end to wait for.
    const text = type.startsWith('text/event-stream') ? '' : await response.clone().text();
    documented.check(init.method ?? 'GET', path, { status: response.status, type, text });
    return response;
  };
}

function undocumented(call: string, { status, type }: GivenAnswer): Error {
  return new Error(`The document knows no ${status} ${type || 'without a body'} of ${call}.`);
}

/** The document with objects that allow no further members. */
function closed(schema: Document): Document {
  if (typeof schema !== 'object' || schema === null) return schema;
  if (Array.isArray(schema)) return schema.map(closed);
  const parts = Object.fromEntries(Object.entries(schema).map(([name, part]) => [name, closed(part)]));
  const isOpen =
    schema.type !== 'object' || !schema.properties || schema.additionalProperties !== undefined || schema.properties.title;
  return isOpen ? parts : { ...parts, additionalProperties: false };
}
