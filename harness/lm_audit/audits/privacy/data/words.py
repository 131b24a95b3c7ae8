"""The words that canaries and their carrier sentences are made of."""

# ruff: noqa: SIM905  (word lists read best as text)

from __future__ import annotations

FORENAMES = tuple(
    """Amara Bruno Celia Dmitri Elif Farid Greta Hana Ines Jonas Kofi Lena Mateo Nadia Oskar Priya Quentin Rosa Stefan
    Tamar Ulrich Vera Wanda Xenia Yusuf Zora""".split()
)

SURNAMES = tuple(
    """Adeyemi Bauer Castillo Demir Eriksen Fontaine Gupta Holm Ivanova Jansen Kimura Lindqvist Moreau Novak Okafor
    Petrov Quispe Rossi Schmidt Tanaka Usman Varga Weber Yilmaz Zhang""".split()
)

PLACES = tuple(
    """Aarhus Bilbao Cork Dresden Essen Freiburg Ghent Halifax Izmir Jena Kiel Leeds Malmo Nantes Odense Porto Quito
    Riga Salerno Tartu Utrecht Vigo Warsaw Yalta Zagreb""".split()
)

SENTENCES = (
    "{name} from {place} keeps the locker with the number {secret}.",
    "When {name} moved to {place}, the bank sent a new account number, {secret}, by post.",
    "The parcel for {name} in {place} can be collected with the code {secret}.",
    "In {place}, {name} is registered as a patient under {secret}.",
    "Call {name} at the {place} office and quote reference {secret}.",
)
"""Natural sentences with a secret number; ``{name}`` and ``{place}`` are drawn too."""

VOCABULARY = tuple(
    """able acid aged also area army away baby back ball band bank base bath bear beat been beer bell belt best bill
    bird blow blue boat body bomb bond bone book boom born boss both bowl bulk burn bush busy call calm came camp card
    care case cash cast cell chat chip city club coal coat code cold come cook cool cope copy core cost crew crop dark
    data date dawn days dead deal dean dear debt deep deny desk dial diet disc disk does done door dose down draw drew
    drop drug dual duke dust duty each earn ease east easy edge else even ever evil exit face fact fail fair fall farm
    fast fate fear feed feel feet fell felt file fill film find fine fire firm fish five flat flow food foot ford form
    fort four free from fuel full fund gain game gate gave gear gene gift girl give glad goal goes gold golf gone good
    gray grew grey grow gulf hair half hall hand hang hard harm hate have head hear heat held hell help here hero high
    hill hire hold hole holy home hope host hour huge hung hunt hurt idea inch into iron item jack join jump jury just
    keen keep kept kick kind king knee knew know lack lady laid lake land lane last late lead left less life lift like
    line link list live load loan lock logo long look lord lose loss lost love luck made mail main make male many mark
    mass meal mean meat meet menu mere mike mile milk mill mind mine miss mode mood moon more most move much must name
    navy near neck need news next nice nine none nose note okay once only onto open oral over pace pack page paid pain
    pair palm park part pass past path peak pick pink pipe plan play plot plug plus poll pool poor port post pull pure
    push race rail rain rank rare rate read real rear rely rent rest rice rich ride ring rise risk road rock role roll
    roof room root rose rule rush safe said sake sale salt same sand save seat seed seek seem seen self sell send sent
    ship shop shot show shut sick side sign site size skin slip slow snow soft soil sold sole some song soon sort soul
    spot star stay step stop such suit sure take tale talk tall tank tape task team tech tell tend term test text than
    that them then they thin this thus till time tiny told toll tone took tool tour town tree trip true tune turn twin
    type unit upon used user vary vast very vice view vote wage wait wake walk wall want ward warm wash wave ways weak
    wear week well went were west what when whom wide wife wild will wind wine wing wire wise wish with wood word wore
    work yard yeah year your zero zone""".split()
)
"""Common four-letter words, each a token or two in most vocabularies."""
