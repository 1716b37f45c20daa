import type { CompanyKey, Environment } from '../core/company.js';
import type { Secret } from '../core/secret.js';
import type { RunRow } from '../db/tables/runs.js';
import type { Connected, Failed, Started } from '../oauth/authorization.js';
import type { CompanyStatus, RunStatus } from './models.js';

/** A page of a list; `nextCursor` is absent on the last one. */
export interface Page<T> {
  readonly data: readonly T[];
  readonly nextCursor?: string;
}

/** An onboarded company as the connections know it. */
export interface ConnectionView {
  readonly environment: Environment;
  readonly companyId: string;
  readonly name: string | null;
  readonly status: CompanyStatus;
  readonly paused: boolean;
  /** Why a person must authorize again; present while the status says so. */
  readonly reauthorizationReason: string | null;
  readonly token: { readonly expiresAt: Date | null; readonly refreshedAt: Date | null };
  readonly nextSyncAt: Date | null;
}

export interface ConnectionsPort {
  find(key: CompanyKey): Promise<ConnectionView | undefined>;
  /** Throws invalid_request for a cursor that no answer gave. */
  list(filter: {
    status?: CompanyStatus;
    environment?: Environment;
    limit: number;
    cursor?: string;
  }): Promise<Page<ConnectionView>>;
  /** Throws company_not_found. */
  pause(key: CompanyKey): Promise<unknown>;
  /** Throws company_not_found, and reauthorization_required where resuming would not help. */
  resume(key: CompanyKey): Promise<unknown>;
  /** Tokens, mirrored rows, ledger, checkpoints and holds go, and the audit says who did it. Throws company_not_found. */
  remove(key: CompanyKey, actor: string): Promise<unknown>;
}

export interface OnboardingPort {
  /**
   * Proves the refresh token by spending it, then stores the new pair. `created` is false when it re-authorized a company.
   * Throws already_onboarded, onboarding_in_progress, token_refused, token_for_another_company, service_unreachable, environment_not_configured.
   */
  onboard(request: { environment: Environment; companyId: string; refreshToken: Secret }): Promise<{ created: boolean }>;
}

export interface ConnectLinksPort {
  /** Throws environment_not_configured. */
  create(request: { environment: Environment; companyId?: string | undefined }): Promise<{ url: string; expiresAt: Date }>;
  /** Where each company that must authorize again starts it, by `environment/company_id`. */
  reauthorizationUrls(companies: readonly CompanyKey[]): Promise<ReadonlyMap<string, string>>;
}

/** The authorization code flow behind the pages. */
export interface AuthorizationPort {
  start(token: string): Promise<Started>;
  finish(answer: { code?: string | undefined; state?: string | undefined }): Promise<Connected | Failed>;
}

export interface RunsPort {
  /** Throws company_not_found, company_paused, reauthorization_required, unknown_resource. */
  request(request: {
    company: CompanyKey;
    trigger: 'onboarding' | 'reauthorization' | 'manual';
    mode?: 'resume' | 'full';
    resources?: readonly string[];
  }): Promise<RunRow>;
  /** Returns how many runs were asked for. */
  requestMany(filter: { status?: 'failed'; environment?: Environment }): Promise<number>;
  find(id: string): Promise<RunRow | undefined>;
  list(filter: {
    companyId?: string;
    environment?: Environment;
    status?: RunStatus;
    limit: number;
    cursor?: string;
  }): Promise<Page<RunRow>>;
  /** Throws run_not_found. */
  cancel(id: string): Promise<RunRow>;
}

/** Decides on deletions that the guard held back. Both throw hold_not_found and hold_not_open. */
export interface HoldsPort {
  approve(id: string): Promise<unknown>;
  reject(id: string): Promise<unknown>;
}

/** One part without which Muster cannot work; `check` throws when it is missing. */
export interface ReadinessCheck {
  readonly name: string;
  check(): Promise<unknown>;
}
