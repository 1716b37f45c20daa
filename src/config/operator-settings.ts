import { resolve } from 'node:path';
import { z } from 'zod';
import { type OperatorSettings, readOperator } from '../api/companies/connect-operator.js';
import type { Fault } from '../core/errors.js';
import { present } from '../core/json.js';
import { optional } from './setting-help.js';
import { httpsUrl, isSafe } from './setting-values.js';

const name = z
  .string()
  .refine((text) => !/\p{Cc}/u.test(text) && text.length <= 100, 'must be one line of at most 100 characters');

const contact = z
  .string()
  .refine(
    (text) => /^[^\s@:/?&]+@[^\s@:/?&]+\.[^\s@:/?&]+$/.test(text) || (URL.canParse(text) && isSafe(new URL(text)) && isWeb(text)),
    'must be a mail address, or the address of a page that begins with https://',
  );

const isWeb = (text: string) => /^https?:\/\//i.test(text);

const path = z.string().transform((text) => resolve(text));

const EXAMPLES = { OPERATOR_LOGO: '/etc/muster/logo.svg', CONNECT_TEXTS: '/etc/muster/connect-texts' } as const;

/** Who customers see when they open a connect link. */
export function operatorSettings() {
  return {
    OPERATOR_NAME: optional(name, {
      help: 'Your name, as the pages of [connect links](authorization.md#what-the-customer-sees) show it to customers.',
      unset: 'the pages name the person who sent the link',
      example: 'Nordlys Regnskap AS',
    }),
    OPERATOR_LOGO: optional(path, {
      help: 'Your logo on these pages: a file in PNG or SVG, at most 100 kB.',
      unset: 'none',
      example: EXAMPLES.OPERATOR_LOGO,
    }),
    OPERATOR_CONTACT: optional(contact, {
      help: 'Whom customers ask: a mail address, or the https address of a page.',
      unset: 'the pages name the person who sent the link',
      example: 'support@example.com',
    }),
    CONNECT_RETURN_URL: optional(httpsUrl, {
      help: 'Where customers go on after they have connected a company: the page has a button that leads there. https unless on loopback.',
      unset: 'the page can be closed',
      example: 'https://www.example.com/welcome',
    }),
    CONNECT_TEXTS: optional(path, {
      help: 'Folder with texts of these pages in further languages, or in other words: [files](authorization.md#texts-and-languages) such as `de.json`.',
      unset: 'English and Norwegian Bokmål',
      example: EXAMPLES.CONNECT_TEXTS,
    }),
  };
}

type Settings = ReturnType<typeof operatorSettings>;
type Values = { readonly [Name in keyof Settings]?: z.output<Settings[Name]> };

export function operatorOf(values: Values): OperatorSettings {
  return present({
    name: values.OPERATOR_NAME,
    contact: values.OPERATOR_CONTACT,
    returnUrl: values.CONNECT_RETURN_URL,
    logoPath: values.OPERATOR_LOGO,
    textsFolder: values.CONNECT_TEXTS,
  });
}

/** The faults of the files that the settings name. */
export function faultsOfFiles(operator: OperatorSettings): Fault[] {
  const faults: Fault[] = [];
  readOperator(operator, (where, problem) => faults.push({ where, problem, example: EXAMPLES[where] }));
  return faults;
}
