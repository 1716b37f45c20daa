import type { CompanyKey, Environment } from '../core/company.js';
import type { ProviderSettings } from '../core/provider-settings.js';
import { Secret } from '../core/secret.js';
import type { Transaction } from '../db/connection/transaction.js';
import { databaseTime } from '../db/tables/audit.js';
import { advanceConnectLink, type ConnectLinkRow, completeConnectLink, findConnectLink } from '../db/tables/connect-links.js';
import { type QuarantineReason, UNNAMED } from '../db/tables/quarantined-tokens.js';
import { registerSecret } from '../observability/secret-registry.js';
import type { AuthorizationFlows, ReturnedFlow, StartedFlow } from './authorization-flows.js';
import type { ConnectLinks } from './connect-links.js';
import { reasonOf, recordFlowEnd, shownText } from './flow-record.js';
import { type Dependencies, quarantine, saveGrant } from './grant-store.js';
import { requireOurs } from './installation.js';
import { type Grant, suspectOf, type TokenResponse } from './token-response.js';

/** Why a flow did not start, or connected nothing. */
export type AuthorizationFailure =
  /** No link has this token, or its company was removed. */
  | 'unknown_link'
  | 'expired_link'
  /** The link has connected a company already. */
  | 'completed_link'
  /** The environment is not configured, or the service refuses our client: only the operator can help. */
  | 'not_configured'
  /** The service sent the browser back without a code. */
  | 'cancelled'
  /** No flow has this state. */
  | 'unknown_state'
  /** The flow was started too long ago. */
  | 'expired_state'
  /** The code of this flow was exchanged before, or a later flow of the link has progressed further. */
  | 'spent_state'
  /** The service refuses the code. */
  | 'refused_code'
  /** The person chose another company than the one named by the link. */
  | 'wrong_company'
  /** The company was removed while the code was being exchanged. */
  | 'removed_company'
  /** The service could not be reached or gave no answer; the code may be used up. */
  | 'service_down'
  /** The grant is not enough to keep the company connected. */
  | 'unusable_grant';

/** A started flow: the next address of the browser, and the cookie with which it returns. */
export interface Started extends StartedFlow {
  /** The address that the cookie is for. */
  readonly callback: URL;
}

/** The parameters that the browser brings to the callback. */
export interface Returned {
  readonly code?: string | undefined;
  readonly state?: string | undefined;
  /** The cookie of the browser that started the flow. */
  readonly mark?: string | undefined;
  readonly error?: string | undefined;
  readonly errorDescription?: string | undefined;
}

/** A completed consent: the company is stored and may be synced. */
export interface Connected {
  readonly company: CompanyKey;
  /** False if the company was stored already and got a newer authorization. */
  readonly created: boolean;
}

/** A link with which a flow can be started. */
export interface LinkTarget {
  readonly environment: Environment;
  /** The company named by the link. */
  readonly companyId?: string;
}

export interface Failed {
  readonly failure: AuthorizationFailure;
  readonly environment?: Environment;
  /** The company named by the link. */
  readonly companyId?: string;
  /** The link, to start again. Only for the browser that has it or started the flow with it, and while it is valid. */
  readonly again?: string;
}

interface AuthorizationDependencies extends Dependencies {
  readonly links: ConnectLinks;
  readonly flows: AuthorizationFlows;
  readonly providers: Partial<Record<Environment, ProviderSettings>>;
}

const UNEXPLAINED = { token: 'refused_code', client: 'not_configured', service: 'service_down' } as const;

/** A link in use. It is shown again only to the browser that has it or started the flow with it, because others see the state, too. */
type UsedLink = ConnectLinkRow & { readonly isStarter: boolean };

/** A link whose code is being exchanged, and the database's time before the exchange. */
type AskedLink = UsedLink & { readonly since: string };

/**
 * The authorization code flow from a connect link to a stored connection (docs/authorization.md). Starting it uses nothing up, so a
 * program that previews links does no harm. The link's epoch ensures that no state, and so no code, is exchanged twice.
 */
export class Authorization {
  readonly #deps: AuthorizationDependencies;
  readonly #exchanges = new Set<Promise<unknown>>();

  constructor(deps: AuthorizationDependencies) {
    this.#deps = deps;
  }

  /** Says for which company a link is, and starts nothing. */
  async look(token: string): Promise<LinkTarget | Failed> {
    const found = await this.#open(token);
    if ('failure' in found) return found;
    const { environment, companyId } = found.link;
    return { environment, ...(companyId !== null && { companyId }) };
  }

  /** Returns the address for the browser that opened a link. */
  async start(token: string): Promise<Started | Failed> {
    const found = await this.#open(token);
    if ('failure' in found) return found;
    const { link, provider } = found;
    const started = await this.#deps.flows.start(link, provider);
    return started ? { ...started, callback: provider.redirectUri } : { failure: 'unknown_link' };
  }

  /** The link, if a flow can be started with it. */
  async #open(token: string): Promise<{ readonly link: UsedLink; readonly provider: ProviderSettings } | Failed> {
    const { links, providers, clock } = this.#deps;
    const found = await links.findByToken(token);
    if (!found) return { failure: 'unknown_link' };
    const link = { ...found, isStarter: true };
    if (link.completedAt) return this.#failed('completed_link', link);
    if (link.expiresAt.getTime() <= clock.now()) return this.#failed('expired_link', link);
    const provider = providers[link.environment];
    return provider ? { link, provider } : this.#failed('not_configured', link);
  }

  /** Exchanges the code that the browser brought: it is sent to the service at once, and never again. */
  async finish({ code, state, mark, ...errors }: Returned): Promise<Connected | Failed> {
    const { db, flows } = this.#deps;
    const flow = state === undefined ? undefined : await flows.find(state, mark);
    const found = flow && (await findConnectLink(db, { id: flow.linkId }));
    if (!flow || !found) return { failure: code ? 'unknown_state' : 'cancelled' };
    const link = { ...found, isStarter: flow.isStarter };
    if (!code) return this.#cancelled(flow, link, errors);
    if (link.completedAt) return this.#failed('completed_link', link);
    if (flow.epoch !== link.epoch) return this.#failed('spent_state', link);
    if (flow.isExpired) return this.#failed('expired_state', link);
    registerSecret(code);
    const exchange = this.#exchange(link, new Secret(code), flow.verifier);
    this.#exchanges.add(exchange);
    return exchange.finally(() => this.#exchanges.delete(exchange));
  }

  /** Resolves when this process runs no exchange. Await it before you close the database. */
  async settle(): Promise<void> {
    await Promise.allSettled(this.#exchanges);
  }

  /** Recorded once per flow, so that a repeated address does not fill the log. */
  async #cancelled(flow: ReturnedFlow, link: UsedLink, errors: Pick<Returned, 'error' | 'errorDescription'>): Promise<Failed> {
    if (await this.#deps.flows.end(flow)) {
      const causes = { error: shownText(errors.error), error_description: shownText(errors.errorDescription) };
      await recordFlowEnd(this.#deps, { ...endOf(link), outcome: 'cancelled', causes });
    }
    return this.#failed('cancelled', link);
  }

  async #exchange(link: UsedLink, code: Secret, verifier: Secret): Promise<Connected | Failed> {
    const { db, endpoints } = this.#deps;
    const endpoint = endpoints[link.environment];
    if (!endpoint) return this.#failed('not_configured', link);
    await requireOurs(db);
    if (!(await advanceConnectLink(db, link))) return this.#failed('spent_state', link);
    const since = await databaseTime(db.prisma);
    const answer = await endpoint.exchangeCode(code, verifier);
    const outcome = await this.#conclude({ ...link, since }, answer);
    if ('company' in outcome) await recordFlowEnd(this.#deps, { ...endOf(link), company: outcome.company, outcome: 'done' });
    else {
      const reason = reasonOf(answer) ?? (outcome.failure === 'unusable_grant' ? lacking(answer) : undefined);
      await recordFlowEnd(this.#deps, { ...endOf(link), outcome: outcome.failure, causes: { reason } });
    }
    return outcome;
  }

  async #conclude(link: AskedLink, answer: TokenResponse): Promise<Connected | Failed> {
    switch (answer.kind) {
      case 'granted':
        return this.#keep(link, answer);
      case 'malformed':
        await this.#setAside(link, nameOf(link, link.companyId), 'unusable_grant', answer.refreshToken);
        return this.#failed('unusable_grant', link);
      case 'unexplained':
        // The page that blames the code may be wrong: if our client is at fault, only the recorded reason shows it.
        return this.#failed(UNEXPLAINED[suspectOf(answer)], link);
      case 'refused':
        return this.#failed('refused_code', link);
      case 'client_refused':
        return this.#failed('not_configured', link);
      case 'transient':
      case 'unreachable':
      case 'ambiguous':
        return this.#failed('service_down', link);
    }
  }

  /** A pair that cannot be stored for its company goes to quarantine, because it may be that company's only key. */
  async #keep(link: AskedLink, { refreshToken, ...grant }: Grant): Promise<Connected | Failed> {
    if (!refreshToken) return this.#failed('unusable_grant', link);
    const companyId = grant.companyId ?? link.companyId;
    const company = nameOf(link, companyId);
    if (companyId === null) {
      await this.#setAside(link, company, 'unnamed_company', refreshToken);
      return this.#failed('unusable_grant', link);
    }
    if (link.companyId !== null && companyId !== link.companyId) {
      await this.#setAside(link, company, 'another_company', refreshToken);
      return this.#failed('wrong_company', link);
    }
    const mayCommit = (tx: Transaction) => completeConnectLink(tx, { ...link, at: new Date(this.#deps.clock.now()) });
    const origin = { since: link.since, linkId: link.id };
    const saved = await saveGrant(this.#deps, { company, grant: { ...grant, refreshToken }, origin }, mayCommit);
    if (typeof saved !== 'string') return { company, ...saved };
    return this.#failed(saved === 'removed' ? 'removed_company' : 'spent_state', link);
  }

  #setAside(link: AskedLink, company: CompanyKey, reason: QuarantineReason, refreshToken: Secret): Promise<void> {
    return quarantine(this.#deps, { company, reason, refreshToken, origin: { since: link.since, linkId: link.id } });
  }

  #failed(failure: AuthorizationFailure, link: UsedLink): Failed {
    const isWithdrawn = failure === 'removed_company' && link.companyId !== null;
    const again = isWithdrawn || !link.isStarter ? undefined : this.#deps.links.urlOf(link);
    return {
      failure,
      environment: link.environment,
      ...(link.companyId !== null && { companyId: link.companyId }),
      ...(again !== undefined && { again }),
    };
  }
}

/** The members of a flow's end that come from its link. */
function endOf({ id, environment, companyId }: ConnectLinkRow) {
  return { linkId: id, environment, company: companyId === null ? undefined : { environment, companyId } };
}

/** Names the missing member of a grant. */
function lacking(answer: TokenResponse): string {
  return `${answer.kind === 'granted' && answer.refreshToken ? 'company_id' : 'refresh_token'} is missing`;
}

function nameOf({ environment }: ConnectLinkRow, companyId: string | null): CompanyKey {
  return { environment, companyId: companyId ?? UNNAMED };
}
