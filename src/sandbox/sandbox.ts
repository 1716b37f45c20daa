import type { FastifyRequest } from 'fastify';
import { type Clock, systemClock } from '../core/clock.js';
import { Secret } from '../core/secret.js';
import { Authority } from './authority.js';
import { authorityRoutes } from './authority-routes.js';
import { type CompanySpec, EXAMPLE_COMPANIES, planCompany, type Resource } from './company-spec.js';
import { controlRoutes, resetSandbox } from './control-routes.js';
import { Faults } from './faults.js';
import { Grants, type Person } from './grants.js';
import { lessonRoutes, meetLesson } from './lessons/lesson-routes.js';
import { Lessons } from './lessons/lessons.js';
import { listRoutes, type PageStart } from './list-routes.js';
import { RateLimiter, type RateLimitOptions } from './rate-limiter.js';
import { RequestLog } from './request-log.js';
import { serve } from './server.js';
import { randomToken, Tokens } from './tokens.js';
import { keepAlive, World } from './world.js';

export interface SandboxOptions {
  /** Default 127.0.0.1. */
  readonly host?: string;
  /** Default 0: any free port. */
  readonly port?: number;
  readonly clock?: Clock;
  /** Equal seeds and companies give equal records. Default 1. */
  readonly seed?: number;
  /** The life of access tokens. Default 1799. */
  readonly accessTokenSeconds?: number;
  /** The life of page tokens. Default 600. */
  readonly pageTokenSeconds?: number;
  /** The share of all records that changes, joins or leaves in a minute, e.g. 0.002. Default false: nothing changes by itself. */
  readonly live?: { readonly changesPerMinute: number } | false;
  /** Default: five companies with 0, 1, 37, 1,234 and 20,000 employees. */
  readonly companies?: readonly CompanySpec[];
  /** The application's registered redirect URLs: https, or http on loopback. Default: Muster's own on port 8080. */
  readonly redirectUris?: readonly string[];
  /** The most records of a page. Default 1000. */
  readonly maxTake?: number;
  /** The delay of every response. Default 0. */
  readonly latencyMs?: number;
  /** Whether responses to GET have an ETag, and requests with it get 304. Default false. */
  readonly etags?: boolean;
  readonly clientId?: string;
  readonly clientSecret?: Secret;
  /** The file that stores grants; without it, a restart forgets every authorization. */
  readonly stateFile?: string;
  /** Lists whose order differs from request to request. */
  readonly unstable?: readonly Resource[];
  /** Lists whose envelope is in a member `value`. */
  readonly wrapped?: readonly Resource[];
}

export type Sandbox = Awaited<ReturnType<typeof startSandbox>>;

const DEFAULT_REDIRECT_URIS = ['http://127.0.0.1:8080/oauth/callback', 'http://localhost:8080/oauth/callback'];

/**
 * Starts an independent provider with made-up data, which implements everything in the service's interface specification. It shares no code
 * with the client side, so that no common mistake can satisfy both.
 * Throws MusterError `port_in_use`, or `invalid_configuration` for an unsafe redirect URI or a bad company_id.
 */
export async function startSandbox(options: SandboxOptions = {}) {
  const { host = '127.0.0.1', port = 0, clock = systemClock, latencyMs = 0, etags = false, seed = 1 } = options;
  const { accessTokenSeconds = 1799, redirectUris = DEFAULT_REDIRECT_URIS, maxTake = 1000, wrapped = [] } = options;
  const { clientId = 'muster-sandbox', clientSecret = new Secret(randomToken()) } = options;
  const planned = (options.companies ?? EXAMPLE_COMPANIES).map(planCompany);

  const world = new World(planned, seed, options.unstable ?? []);
  const grants = new Grants(clock, accessTokenSeconds, options.stateFile);
  const authority = new Authority(clock, { clientId, clientSecret: clientSecret.reveal(), redirectUris }, grants);
  const tokens = new Tokens<PageStart>(clock, options.pageTokenSeconds ?? 600);
  const faults = new Faults();
  const log = new RequestLog();
  const lessons = new Lessons(clock, world, grants);
  const controlToken = new Secret(randomToken());
  const controls = { world, grants, faults, log, lessons };
  let limiter: RateLimiter | undefined;

  const met = (request: FastifyRequest) => meetLesson(request, lessons, grants);
  const server = await serve({ host, port, clock, latencyMs, etags, faults, log, limiter: () => limiter, met }, (app) => {
    authorityRoutes(app, authority, world, accessTokenSeconds);
    listRoutes(app, { world, grants, tokens, maxTake, wrapped, lessons });
    controlRoutes(app, controls);
    lessonRoutes(app, lessons, world, controlToken);
  });

  const stopping = new AbortController();
  const living = options.live ? keepAlive(world, options.live.changesPerMinute, clock, stopping.signal) : undefined;

  return {
    /** Both {base_url} and {auth_url}. */
    url: server.url,
    clientId,
    clientSecret,
    /** The companies as they were at the start. */
    companies: planned.map((company) => ({ environment: 'test' as const, ...company })),
    requests: log,
    faults,
    lessons,
    /** The token that begins and ends lessons over HTTP. */
    controlToken,
    /** Limits the API's requests from now on; undefined: no limit, as at the start. */
    limit: (limit: RateLimitOptions | undefined) => {
      limiter = limit && new RateLimiter(limit);
    },
    /** How often a spent refresh token came again. */
    get reusedRefreshTokens() {
      return grants.reusedRefreshTokens;
    },
    /** The refresh token of a new grant, as if a member had gone through the consent page. */
    issueRefreshToken: (companyId: string) => new Secret(grants.open(world.company(companyId).companyId)),
    /** From now on this person, who may see only a part of the company, authorizes for it. */
    setPerson: (companyId: string, person: Person) => grants.setPerson(world.company(companyId).companyId, person),
    /** Also gives the existing grants to this person, as if the person's role had changed. */
    changePerson: (companyId: string, person: Person) => grants.changePerson(world.company(companyId).companyId, person),
    /** Ends every token of the company. */
    revoke: (companyId: string) => grants.revoke(world.company(companyId).companyId),
    /** The truth: the JSON text of every record, in order, with exact digits. */
    records: (companyId: string, resource: Resource | 'companies') =>
      resource === 'companies' ? [world.companyRecord(companyId)] : world.list(companyId, resource).texts(),
    list: (companyId: string, resource: Resource) => world.list(companyId, resource),
    /** Makes `count` changes, joins and departures, spread over all lists by the seed. */
    mutate: (count: number) => world.mutate(count),
    /** Restores the lists of the seed, ends lessons and faults, and empties the log; authorizations stay. */
    reset: () => resetSandbox(controls),
    async stop() {
      stopping.abort();
      await living;
      await server.stop();
    },
  };
}
