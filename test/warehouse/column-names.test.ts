import fc from 'fast-check';
import { expect, test } from 'vitest';
import { nameColumn, textColumn } from '../../src/warehouse/column-names.js';

test.each([
  [['hireDate'], 'hire_date'],
  [['HTTPServerID'], 'http_server_id'],
  [['Fødselsdato'], 'fodselsdato'],
  [['prénom'], 'prenom'],
  [['ÆrligTal'], 'aerlig_tal'],
  [['address', 'postalCode'], 'address__postal_code'],
  [['a__b'], 'a_b'],
  [['@odata.type'], 'odata_type'],
  [['2024'], 'key_2024'],
  [[''], 'key'],
  [['🏆'], 'key'],
  [['id'], 'id_2'],
  [['companyId'], 'company_id_2'],
  [['_first_seen_at'], 'first_seen_at'],
  [['x'.repeat(57)], 'x'.repeat(57)],
  [['straße'], 'strasse'],
  [['Łódź'], 'lodz'],
  [['ÞórðurĐ'], 'thordur_d'],
  [['Ağırlık'], 'agirlik'],
  [['Ťăȷ'], 'taj'],
  [['датаРождения'], 'data_rozhdeniya'],
  [['ДАТА_РОЖДЕНИЯ'], 'data_rozhdeniya'],
  [['ИДСотрудника'], 'id_sotrudnika'],
  [['IDСотрудника'], 'id_sotrudnika'],
  [['большойЙод'], 'bolshoy_yod'],
  [['Київ'], 'kiiv'],
  [['Ημερομηνία'], 'imerominia'],
  [['出生日期'], 'chu_sheng_ri_qi'],
  [['生年月日'], 'sheng_nian_yue_ri'],
  [['ユーザー'], 'yuza'],
  [['ﾕｰｻﾞｰ'], 'yuza'],
  [['ふりがな'], 'furigana'],
  [['الاسم'], 'lsm'],
  [['이름'], 'i_leum'],
  [['שם'], 'sm'],
  [['नाम'], 'nam'],
  [['ชื่อ'], 'chueo'],
  [['հասցե', 'քաղաք'], 'hastse__kaghak'],
  [['მისამართი'], 'misamarti'],
  [['日期2024'], 'ri_qi2024'],
  [['٢٠٢٤'], 'key_2024'],
  [['Ⅳ'], 'iv'],
  [['€ %'], 'key'],
] as const)('%j is %s', (path, name) => {
  expect(nameColumn(path, [])).toBe(name);
});

test('a name that is too long is told apart by a hash', () => {
  const [one, other] = ['y', 'z'].map((end) => nameColumn([`${'x'.repeat(199)}${end}`], []));
  expect(one).toMatch(/^x{48}_[0-9a-f]{8}$/);
  expect(other).not.toBe(one);
});

const key = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 250 }),
  fc.constantFrom(
    'a',
    'A',
    'á',
    'a_2',
    'a2',
    'text',
    'a__text',
    '_a',
    'id',
    'ID',
    'id_2',
    'environment',
    '_rest',
    'companyId',
    'x'.repeat(57),
    'X'.repeat(60),
  ),
);

test('any keys get names that are safe and differ, with room for their text columns', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.array(key, { minLength: 1, maxLength: 2 }), { maxLength: 60, selector: (path) => JSON.stringify(path) }),
      (paths) => {
        const names: string[] = [];
        for (const path of paths) names.push(nameColumn(path, names));
        const all = ['environment', 'company_id', 'id', ...names.flatMap((name) => [name, textColumn(name)])];
        expect(new Set(all).size).toBe(all.length);
        for (const name of all) expect(name).toMatch(/^[a-z][a-z0-9_]{0,62}$/);
      },
    ),
    { numRuns: 100 },
  );
});
