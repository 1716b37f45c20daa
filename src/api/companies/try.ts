import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Catalogue, Endpoint } from '../../catalogue/endpoint.js';
import { BASE_SCHEMA } from '../../catalogue/entry-schema.js';
import { type CompanyKey, companyNotFound, describeCompany, type Environment, keyText } from '../../core/company.js';
import { MusterError } from '../../core/errors.js';
import type { Database } from '../../db/connection/database.js';
import type { ApiClient } from '../../http/api-client.js';
import type { ResponseMemory } from '../../http/response-memory.js';
import { type TokenSource, tokensUntil } from '../../http/token-source.js';
import { entryNameOf } from '../../learn/entry-name.js';
import { learnList } from '../../learn/learn-list.js';
import { type LearnedList, type ListToLearn, TOPICS } from '../../learn/learned-list.js';
import { MOST_BYTES } from '../../learn/seen-page.js';
import type { Connections } from '../../oauth/connections.js';
import { audited } from '../plumbing/audit.js';
import { CompanyParams, Count, ResourceName } from '../plumbing/models.js';
import { operationsOf } from '../plumbing/operations.js';
import { READING_PROBLEMS } from './company-model.js';

/** A path begins with one slash: `//host/…` would name another host, and the access token would go there. */
const PATH = /^\/(?![/\\])[^\s?#\\{}]*$/;
const DOTS = /(^|\/)(\.|%2e){1,2}(\/|$)/i;
const path = z
  .string()
  .max(500, 'is too long')
  .refine(
    (text) => PATH.test(text.replaceAll('{company_id}', 'x')),
    'must begin with one / and have no spaces, ? or #; {company_id} is the only placeholder',
  )
  .refine((text) => !DOTS.test(text), 'must not hold the segments . and ..')
  .describe("Path on the environment's base URL; `{company_id}` in it is replaced.");
const constants = z
  .record(
    z.string().regex(/^[^\s&=#?]{1,64}$/, 'must be names of parameters'),
    z.union([z.string().max(500), z.number(), z.boolean()], 'must be texts, numbers, true or false'),
  )
  .refine((all) => Object.keys(all).length <= 20, 'has more than 20 parameters');

const TryList = z
  .strictObject({
    resource: ResourceName.exactOptional().describe('A resource of the catalogue. Give either this or `path`.'),
    path: path.exactOptional(),
    base: BASE_SCHEMA.exactOptional().describe(
      'Name of the further host of the API that has the list at `path`, as in a catalogue entry. Without it, the base URL has the list.',
    ),
    method: z.enum(['GET', 'POST']).exactOptional(),
    query: constants.exactOptional().describe('Constants that every request carries in its query.'),
    body: constants.exactOptional().describe('Constants that every request carries in the body of a POST.'),
    samples: z
      .boolean()
      .default(false)
      .describe('Whether to show a few records, redacted by the privacy rules of the catalogue.'),
  })
  .refine(({ resource, path: given }) => (resource === undefined) !== (given === undefined), 'must have either resource or path')
  .refine(({ resource, base }) => resource === undefined || base === undefined, 'must have base only with path')
  .refine(
    ({ method, body, resource }) => body === undefined || resource !== undefined || method === 'POST',
    'must have method POST where it has a body',
  );

const Finding = z.object({
  about: z.enum(TOPICS),
  says: z.string(),
  requests: z.array(Count).describe('Numbers of the requests that showed it.'),
});
const Sent = z.object({
  number: Count,
  asked: z.string().describe('Method, end of the path and parameters, without values that the service has made.'),
  status: Count.nullable(),
  saw: z.string(),
});
const Tried = z
  .object({
    outcome: z
      .enum(['confirmed', 'unconfirmed', 'nothing'])
      .describe(
        '`confirmed`: a rehearsal of the entry met the needs of a proof on every page that it read. `unconfirmed`: something is guessed, or contradicts the entry.',
      ),
    entry: z.string().nullable().describe('A part of a catalogue file, in YAML, with comments.'),
    findings: z.array(Finding),
    look_up: z
      .array(z.string())
      .describe("What to look up in the service's documentation, since no request shows it, and what to try next."),
    requests: z.array(Sent).describe('At most 30.'),
    samples: z.array(z.string()).describe('Texts of records, if `samples` was set.'),
  })
  .meta({ id: 'TriedList', description: 'What Muster found out about a list. Only `samples` has values of records.' });
export type TriedListModel = z.output<typeof Tried>;

export interface TryRouteDependencies {
  readonly db: Database;
  readonly catalogue: Catalogue;
  readonly connections: Connections;
  /** The API of an environment. Throws `environment_not_configured`. */
  readonly apiOf: (environment: Environment, base?: string) => Pick<ApiClient, 'request'>;
  readonly tokensOf: (company: CompanyKey) => TokenSource;
  readonly answers: ResponseMemory;
}

/** The longest time of a look in milliseconds: shorter than callers wait for a response. */
const MOST_MS = 110_000;
/** Bytes of heap for the pages that are compared, in addition to the response that is being read. */
const HEAP = 12 * MOST_BYTES;

const { operator } = operationsOf('companies');

export function tryRoute({
  db,
  catalogue,
  connections,
  apiOf,
  tokensOf,
  answers: memory,
}: TryRouteDependencies): FastifyPluginAsyncZod {
  return async (api) => {
    const closing = new AbortController();
    api.addHook('preClose', async () => closing.abort(new MusterError('stopping', 'The process is being stopped.')));

    api.post(
      '/companies/:environment/:company_id/try',
      operator('tryList', 'Find out how a list is paged, and write its catalogue entry', {
        description:
          'Reads some pages of a list, with at most 30 requests and within the request budget, and describes it: paging, envelope, total, ids, order, cap and ETags, and what a walk could prove. Stores nothing of it.',
        params: CompanyParams,
        body: TryList,
        response: { 200: Tried },
        problems: [...READING_PROBLEMS, 'environment_not_configured', 'token_busy', 'tokens_held', 'token_unreadable'],
      }),
      async ({ params: company, body, caller, headers }, reply) => {
        if (body.samples && headers['idempotency-key'] !== undefined)
          throw new MusterError(
            'invalid_request',
            'Muster does not keep a response with samples: leave out the Idempotency-Key, or samples.',
          );
        const list = listOf(body, company, catalogue);
        const gone = new AbortController();
        reply.raw.once('close', () => gone.abort());
        const signal = AbortSignal.any([AbortSignal.timeout(MOST_MS), closing.signal, gone.signal]);
        const details = { resource: list.name, samples: body.samples };
        return audited(db, { by: caller, action: 'company.try', company, details }, async () => {
          await requireActive(connections, company);
          const requester = { company: keyText(company), urgent: true };
          const parts = {
            api: apiOf(company.environment, list.base),
            tokens: tokensUntil(signal, tokensOf(company)),
            requester,
            signal,
          };
          const reservation = memory.reserve(2 * MOST_BYTES, HEAP);
          try {
            await reservation.granted;
            return presentTried(await learnList(list, parts));
          } finally {
            reservation.release();
          }
        });
      },
    );
  };
}

/** Throws `company_not_found`, `company_paused`, `reauthorization_required`. */
async function requireActive(connections: TryRouteDependencies['connections'], company: CompanyKey): Promise<void> {
  const connection = await connections.find(company);
  if (!connection) throw companyNotFound(company);
  const { status } = connection;
  if (status === 'paused')
    throw new MusterError('company_paused', `The ${describeCompany(company)} is paused: resume it first (POST …/resume).`);
  if (status !== 'active')
    throw new MusterError(
      'reauthorization_required',
      `The ${describeCompany(company)} must authorize again before Muster can read its lists: send it a connect link.`,
    );
}

/** The list to look at. Throws `unknown_resource`, and `invalid_request` for a list that has a parent. */
function listOf(
  { resource, path: given, base, method, query, body, samples }: z.output<typeof TryList>,
  { companyId }: CompanyKey,
  catalogue: Catalogue,
): ListToLearn {
  const template = given?.replaceAll(new RegExp(companyId, 'gi'), '{company_id}');
  const known =
    resource === undefined
      ? catalogue.endpoints.find((endpoint) => endpoint.path === template && endpoint.base === base)
      : catalogue.get(resource);
  if (resource !== undefined && !known)
    throw new MusterError('unknown_resource', `The catalogue has no list ${resource}: give its path instead of its name.`);
  const listPath = template ?? known!.path;
  if (listPath.includes('{id}'))
    throw new MusterError(
      'invalid_request',
      `The list ${resource} has a parent: give its path, with the id of a record of ${known!.parent} instead of {id}.`,
    );
  const own: Partial<Endpoint> = resource === undefined ? {} : known!;
  return {
    name: known?.resource ?? entryNameOf(listPath),
    path: listPath,
    base: base ?? own.base,
    address: {
      method: method ?? own.method ?? 'GET',
      path: listPath.replaceAll('{company_id}', companyId),
      query: { ...own.query, ...Object.fromEntries(Object.entries(query ?? {}).map(([name, value]) => [name, String(value)])) },
      body: { ...own.body, ...body },
    },
    isMethodGiven: (method ?? own.method) !== undefined,
    known,
    withSamples: samples,
  };
}

function presentTried({ outcome, entry, findings, lookUp, requests, samples }: LearnedList): TriedListModel {
  return {
    outcome,
    entry: entry ?? null,
    findings: findings.map(({ about, says, requests: numbers }) => ({ about, says, requests: [...numbers] })),
    look_up: [...lookUp],
    requests: [...requests],
    samples: [...samples],
  };
}
