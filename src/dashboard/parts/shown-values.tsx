import type { ComponentChildren } from 'preact';
import { exactText, lastingText, relativeText, wholeText } from './times.js';
import { useAddress, useView } from './view.js';

// Values for people: times, durations, numbers, states, companies.

const NUMBER = new Intl.NumberFormat('en-GB');

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

interface TimeProps {
  readonly at: string;
  /** Leaves the exact time to the tooltip. */
  readonly isBrief?: boolean;
}

interface WhenProps {
  readonly at: string | null | undefined;
  readonly none?: string;
  readonly isBrief?: boolean;
}

/** "2 hours ago · 26 Nov, 02:14", in the zone of the schedule. */
export function When({ at, none = 'never', isBrief = false }: WhenProps) {
  const { now } = useView();
  if (!at) return <span class="none">{none}</span>;
  return (
    <Timed at={at} isBrief={isBrief}>
      {relativeText(Date.parse(at) - now)}
    </Timed>
  );
}

interface LastingProps {
  readonly since: string;
  readonly isBrief?: boolean;
}

/** "for 4 days · 22 Nov, 02:14": a state that goes on, and when it began. */
export function Lasting({ since, isBrief = false }: LastingProps) {
  const { now } = useView();
  return (
    <Timed at={since} isBrief={isBrief}>
      for {lastingText(now - Date.parse(since))}
    </Timed>
  );
}

function Timed({ at, isBrief = false, children }: TimeProps & { readonly children: ComponentChildren }) {
  const { timezone } = useView();
  return (
    // control-room.js adds the time in the zone of the browser.
    <time dateTime={at} title={wholeText(Date.parse(at), timezone)}>
      {children}
      {!isBrief && (
        <small class="exact">
          <span> · </span>
          {useExact()(at)}
        </small>
      )}
    </time>
  );
}

/** "26 Nov, 02:14" of a time as the API gives it, in the zone of the schedule. */
export function useExact(): (at: string) => string {
  const { timezone, now } = useView();
  return (at) => exactText(Date.parse(at), timezone, now);
}

/** Names the zone of the times of a page. */
export function ZoneOfTimes() {
  const { timezone } = useView();
  return (
    <p class="hint" data-zone={timezone}>
      Times are in {timezone}, the time zone of the schedule (SYNC_TIMEZONE).
    </p>
  );
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
  /** Leaves the id out where there is a name. */
  readonly isBrief?: boolean;
}

/** A company's name comes from the service, and may be any text. */
export function CompanyLink({ environment, companyId, name, isBrief = false }: CompanyLinkProps) {
  return (
    <span class="company">
      <Link class={name ? undefined : 'id'} to={`/companies/${environment}/${companyId}`}>
        {name || companyId}
      </Link>
      {name && !isBrief ? <small class="id">{companyId}</small> : null}
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
  scheduled: 'by the schedule of its lists',
  manual: 'requested',
  reauthorization: 'authorized again',
  resync: 'resync of many',
  verify: 'verify',
  nightly_verify: 'verify, this night’s share',
};

export const TRIGGER_NAMES = Object.keys(TRIGGERS);

export function triggerText(trigger: string): string {
  return TRIGGERS[trigger] ?? trigger;
}
