import type { Catalogue, Endpoint } from '../../catalogue/endpoint.js';
import type { RuleKind } from '../../privacy/rules.js';
import type { Operator } from './connect-operator.js';
import { consentAddress } from './connect-outcomes.js';
import type { ConnectPage } from './connect-page.js';
import type { Language } from './connect-texts.js';

interface Request {
  readonly company: string | undefined;
  /** The link is for one company. */
  readonly namesCompany: boolean;
  readonly operator: Operator;
  readonly catalogue: Catalogue;
}

/** The page before the consent: who asks, for which company, and which lists are read. */
export function requestPage({ company, namesCompany, operator, catalogue }: Request, language: Language): ConnectPage {
  const { text } = language;
  const named = company ?? text('your_company');
  const who = operator.name === undefined ? 'ask.who' : 'ask.who_operator';
  return {
    status: 200,
    tone: 'ask',
    title: text('ask.title'),
    text: [text(who, { company: named, operator: operator.name ?? '' }), text('ask.lists')],
    items: [{ name: text('ask.own_record') }, ...catalogue.endpoints.map((endpoint) => itemOf(endpoint, language))],
    further: [namesCompany ? text('ask.next_company', { company: named }) : text('ask.next'), text('ask.decline')],
    action: { label: text('ask.continue'), href: consentAddress('') },
  };
}

function itemOf({ resource, privacy }: Endpoint, { text, nameOf }: Language) {
  const rules = Object.entries(privacy?.rules ?? {});
  const membersOf = (...kinds: RuleKind[]) =>
    [...new Set(rules.filter(([, kind]) => kinds.includes(kind)).map(([path]) => nameOf('members', path)))].join(', ');
  const [dropped, hidden] = [membersOf('drop'), membersOf('mask', 'hash')];
  const notes = [
    ...(dropped === '' ? [] : [text('ask.dropped', { members: dropped })]),
    ...(hidden === '' ? [] : [text('ask.hidden', { members: hidden })]),
  ];
  return { name: nameOf('lists', resource), ...(notes.length > 0 && { note: notes.join('; ') }) };
}
