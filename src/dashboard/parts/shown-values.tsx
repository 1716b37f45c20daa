import type { ComponentChildren } from 'preact';
import { useAddress, useView } from './view.js';

// Values for people: times, durations, numbers, states, companies.

const RELATIVE = new Intl.RelativeTimeFormat('en-GB', { numeric: 'auto' });
const NUMBER = new Intl.NumberFormat('en-GB');
const STEPS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const;

export const numberText = (value: number): string => NUMBER.format(value);

export const companyCount = (count: number): string => `${numberText(count)} ${count === 1 ? 'company' : 'companies'}`;

interface LinkProps {
  /** A path of the control room, without the path of PUBLIC_URL. */
  readonly to: string;
  readonly class?: string | undefined;
  /** The id of the element that describes the link. */
  readonly describedBy?: string | undefined;
  readonly children: ComponentChildren;
}

export function Link({ to, describedBy, children, class: look }: LinkProps) {
  return (
    <a class={look} href={useAddress()(to)} aria-describedby={describedBy}>
      {children}
    </a>
  );
}

/** A time relative to now; the exact time is in the tooltip and in the element's attribute. */
export function When({ at, none = 'never' }: { readonly at: string | null | undefined; readonly none?: string }) {
  const { now } = useView();
  if (!at) return <span class="none">{none}</span>;
  return (
    <time dateTime={at} title={exactTime(at)}>
      {relativeTime(Date.parse(at) - now)}
    </time>
  );
}

export function exactTime(at: string): string {
  return `${at.slice(0, 10)} ${at.slice(11, 19)} UTC`;
}

function relativeTime(ms: number): string {
  const seconds = ms / 1_000;
  const [unit, length] = STEPS.find(([, each]) => Math.abs(seconds) >= each) ?? (['second', 1] as const);
  return unit === 'second' && Math.abs(seconds) < 10 ? 'now' : RELATIVE.format(Math.round(seconds / length), unit);
}

/** A duration in its two largest units: "3 min 20 s". */
export function durationText(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000));
  const parts = [
    [Math.floor(seconds / 3_600), 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [seconds % 60, 's'],
  ] as const;
  const first = parts.findIndex(([count]) => count > 0);
  return first < 0
    ? '0 s'
    : parts
        .slice(first, first + 2)
        .filter(([count]) => count > 0)
        .map(([count, unit]) => `${count} ${unit}`)
        .join(' ');
}

const STATES: Readonly<Record<string, readonly [text: string, tone: string]>> = {
  active: ['Active', 'good'],
  paused: ['Paused', 'quiet'],
  reauthorization_required: ['Must authorize', 'bad'],
  queued: ['Queued', 'quiet'],
  running: ['Running', 'busy'],
  succeeded: ['Succeeded', 'good'],
  failed: ['Failed', 'bad'],
  cancelled: ['Cancelled', 'quiet'],
  unavailable: ['Unavailable', 'quiet'],
  held: ['Deletions held', 'warn'],
  never: ['Never proved', 'warn'],
  late: ['Late', 'bad'],
  on_time: ['On time', 'good'],
  open: ['Open', 'warn'],
  approved: ['Approved', 'good'],
  rejected: ['Rejected', 'quiet'],
  superseded: ['Superseded', 'quiet'],
  pending: ['Pending', 'busy'],
  delivered: ['Delivered', 'good'],
};

export function stateText(state: string): string {
  return STATES[state]?.[0] ?? state;
}

export function ServiceSays({ sentence }: { readonly sentence: string | undefined }) {
  if (sentence === undefined) return null;
  return (
    <p class="hint">
      The service says: <q>{sentence}</q>
    </p>
  );
}

export function State({ of: state }: { readonly of: string }) {
  return <span class={`state ${STATES[state]?.[1] ?? 'quiet'}`}>{stateText(state)}</span>;
}

export function Environment({ name }: { readonly name: string }) {
  return <span class={`environment ${name}`}>{name}</span>;
}

interface CompanyLinkProps {
  readonly environment: string;
  readonly companyId: string;
  readonly name?: string | null | undefined;
}

/** A company's name comes from the service, and may be any text. */
export function CompanyLink({ environment, companyId, name }: CompanyLinkProps) {
  return (
    <span class="company">
      <Link class={name ? undefined : 'id'} to={`/companies/${environment}/${companyId}`}>
        {name || companyId}
      </Link>
      {name ? <small class="id">{companyId}</small> : null}
    </span>
  );
}

export function CodeHint({ code }: { readonly code: string }) {
  return (
    <p class="hint">
      Code: <code>{code}</code>
    </p>
  );
}

interface FactProps {
  readonly name: string;
  readonly isBad?: boolean | undefined;
  readonly children: ComponentChildren;
}

/** One entry of a `dl`. */
export function Fact({ name, isBad, children }: FactProps) {
  return (
    <div class={isBad ? 'bad' : undefined}>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

const TRIGGERS: Readonly<Record<string, string>> = {
  onboarding: 'first sync',
  nightly: 'nightly',
  manual: 'requested',
  reauthorization: 'authorized again',
  resync: 'resync of many',
  verify: 'verify',
  nightly_verify: 'verify, this night’s share',
};

export function triggerText(trigger: string): string {
  return TRIGGERS[trigger] ?? trigger;
}
