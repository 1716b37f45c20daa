import { EVERYDAY } from './everyday.js';
import { FORMS } from './forms.js';
import type { Lesson } from './lesson.js';
import { LIES } from './lies.js';
import { PASSING_FAULTS } from './passing-faults.js';
import { SPELLINGS } from './spellings.js';
import { TOKEN_ANSWERS } from './token-answers.js';

export interface LessonGroup {
  readonly title: string;
  readonly lessons: readonly Lesson[];
}

export const LESSON_GROUPS: readonly LessonGroup[] = [
  { title: 'Failures of every service', lessons: EVERYDAY },
  { title: 'Lies: Muster must verify none of these', lessons: LIES },
  { title: 'Faults that pass after 45 s', lessons: PASSING_FAULTS },
  { title: 'Odd answers to a refresh, for 45 s', lessons: TOKEN_ANSWERS },
  { title: 'Other spellings of the same fact', lessons: SPELLINGS },
  { title: 'Unusual links, codings, ids and values', lessons: FORMS },
];

export const LESSONS: ReadonlyMap<string, Lesson> = new Map(
  LESSON_GROUPS.flatMap(({ lessons }) => lessons.map((lesson) => [lesson.name, lesson])),
);
