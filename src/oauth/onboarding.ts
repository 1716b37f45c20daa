import { createHash } from 'node:crypto';
import { type CompanyKey, describeCompany } from '../core/company.js';
import { type ErrorCode, MusterError } from '../core/errors.js';
import { ofEnvironment } from '../core/provider-settings.js';
import type { Secret } from '../core/secret.js';
import { AdvisoryLocks } from '../db/advisory-locks.js';
import { withDatabaseErrors } from '../db/sql-state.js';
import { registerSecret } from '../observability/secret-registry.js';
import { type Dependencies, quarantine, saveGrant } from './grant-store.js';
import type { Grant, TokenAnswer } from './token-answer.js';

/** Takes companies in. A refresh token that is given to us is spent to prove it, so everything else is checked before. */
export class Onboarding {
  readonly #deps: Dependencies;
  readonly #locks: AdvisoryLocks;

  constructor(deps: Dependencies) {
    this.#deps = deps;
    this.#locks = new AdvisoryLocks(deps.db.pool);
  }

  /**
   * Proves the token by a refresh and stores the grant; `created` is false when a company that had to authorize again
   * got its new token. Throws `environment_not_configured`, `already_onboarded`, `onboarding_in_progress` (the same company or
   * token, right now), `token_refused`, `token_for_another_company` (the pair is then kept in quarantine),
   * `service_refused` (our client credentials), `service_unreachable`.
   */
  async onboard(request: CompanyKey & { readonly refreshToken: Secret }): Promise<{ created: boolean }> {
    const { environment, companyId, refreshToken } = request;
    const company = { environment, companyId };
    const endpoint = ofEnvironment(this.#deps.endpoints, environment);
    registerSecret(refreshToken.reveal());
    const digest = createHash('sha256').update(refreshToken.reveal()).digest('base64url');
    const names = [`muster onboarding ${environment} ${companyId}`, `muster onboarding ${digest}`];
    const done = await withDatabaseErrors(
      this.#locks.run(names, async () => {
        const found = await this.#deps.connections.find(company);
        if (found && found.status !== 'reauthorization_required') {
          const name = describeCompany(company);
          throw new MusterError('already_onboarded', `${name} is onboarded already (${found.status}); its token was not used`);
        }
        const answer = await endpoint.refresh(refreshToken);
        if (answer.kind === 'malformed') await quarantine(this.#deps, company, answer.refreshToken);
        const grant = granted(company, answer);
        await this.#refuseOther(company, grant);
        return (await saveGrant(this.#deps, company, { refreshToken, ...grant }))!;
      }),
    );
    if (done) return done.result;
    // This request does not wait for the other: should that fail, each request that waits would send a token that may be spent.
    throw new MusterError(
      'onboarding_in_progress',
      `${describeCompany(company)}, or another one with the same token, is being onboarded right now, and this request sent no token; look at the company in a moment, and onboard it again if it is not there`,
    );
  }

  /** The service has used the old token up by now: the new one is the other company's only key, and is kept for it. */
  async #refuseOther(company: CompanyKey, { companyId, refreshToken }: Grant): Promise<void> {
    if (companyId === undefined || companyId === company.companyId) return;
    const other = { ...company, companyId };
    if (refreshToken) await quarantine(this.#deps, other, refreshToken);
    throw new MusterError(
      'token_for_another_company',
      `The token that was given for ${describeCompany(company)} belongs to ${describeCompany(other)}; nothing was onboarded`,
    );
  }
}

function granted(company: CompanyKey, answer: TokenAnswer): Grant {
  const refuse = (code: ErrorCode, problem: string, cause?: unknown) => {
    throw new MusterError(code, `${describeCompany(company)} was not onboarded: ${problem}`, { cause });
  };
  switch (answer.kind) {
    case 'granted':
      return answer;
    case 'refused':
      return refuse(
        'token_refused',
        'the service refuses the refresh token; have it authorize again, with a connect link for instance',
      );
    case 'unexplained':
      return refuse(
        'token_refused',
        `the service refuses the request without a reason (${answer.error}), as it may for a refresh token that is wrong, spent or revoked; have it authorize again, and if that is refused, too, check client id and client secret`,
      );
    case 'client_refused':
      return refuse(
        'service_refused',
        `the service refuses our client (${answer.error}); check client id, client secret and auth URL`,
      );
    case 'unreachable':
      return refuse(
        'service_unreachable',
        `the token was not sent, for the authorization server cannot be reached: ${answer.cause.message}`,
        answer.cause,
      );
    case 'transient':
      return refuse('service_unreachable', `the authorization server answered ${answer.status}; try again`);
    case 'malformed':
    case 'ambiguous':
      return refuse(
        'service_unreachable',
        'the authorization server gave no readable answer; try again, and if the token is refused then, authorize again',
      );
  }
}
