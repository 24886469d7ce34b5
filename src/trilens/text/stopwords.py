"""Stop words by language. Languages that are not listed have none."""

STOP_WORDS: dict[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        "english": "a an and are as at be but by for if in into is it no not of on or such that the their then there these "
        "they this to was will with",
        "german": "aber als am an auch auf aus bei bin bis da das daß dass dem den der des die doch du durch ein eine einem "
        "einen einer eines er es für hat hatte ich ihr im in ist ja man mit nach nicht noch nur ob oder sich sie sind so "
        "über um und uns unter vom von vor war was wenn wer wie wir wird zu zum zur",
        "french": "à au aux avec ce ces dans de des du elle en est et eux il ils je la le les leur lui ma mais me même mes "
        "moi mon ne nos notre nous on ou où par pas pour qu que qui sa se ses son sur ta te tes toi ton tu un une vos "
        "votre vous c d j l m n s t y été être sont était",
        "spanish": "a al como con de del desde donde el ella ellas ellos en entre era es esa ese eso esta este esto ha han "
        "hay la las le les lo los más me mi muy no nos o para pero por porque que se ser si sin sobre son su sus también "
        "te tu un una uno unos y ya",
        "italian": "a ad ai al alla alle allo anche c che chi ci come con d da dal dalla dei del della delle dello di e è ed "
        "era gli ha ho i il in io l la le lei li lo loro lui ma mi ne negli nel nella nelle no noi non o per più quella "
        "questo se si sono su sua sul sulla suo tra tu un una uno vi voi",
        "portuguese": "a à ao aos as às com como da das de dela dele do dos e é ela ele eles em entre era essa esse esta "
        "este eu foi há isso já lhe mais mas me mesmo meu muito na não nas nem no nos o os ou para pela pelo por qual que "
        "quem se sem ser seu sua são também te um uma você",
        "dutch": "aan al als bij dan dat de der deze die dit door een en er had heb het hij hoe hun ik in is je kan maar me "
        "men met mij mijn na naar niet nog nu of om omdat ons ook op over te toen tot u uit van veel voor want waren was "
        "wat we wel werd wie wij worden zal ze zich zij zijn zo zou",
        "swedish": "att av blev bli blir de dem den denna det detta dig din du där efter eller en er ett från för ha hade "
        "han hans har hennes hon i icke inte jag kan man med men mig min mot mycket när nu någon och om oss på så sig sin "
        "som till under upp ut var vad vara vi vid är över",
        "norwegian": "alle at av både ble da de deg den denne der det dette di din du eller en er et etter for fra før ha "
        "hadde han hans har hun hva i ikke jeg kan man med meg men min mot når nå og også om opp oss på seg sin skal som "
        "så til ut var ved vi vil være",
        "danish": "af alle at blev da de deg dem den denne der det dette dig din du efter eller en end er et for fra ham "
        "han hans har havde hun hvad hvis i ikke ind jeg jo kan man med meget men mig min mod ned nogle nu når og også om "
        "op os over på sig sin skal som så til ud var ved vi vil være",
        "finnish": "ei eivät emme en et ette että he hän ja jos joka jotka kanssa kuin kun me mikä minä mitä mukaan mutta "
        "ne niin noin nyt ole oli olin on ovat se sekä sen siitä sinä tai tämä te tuo vaan vai vaikka voi",
        "russian": "а без бы был была были было быть в вам вас весь во вот все всех вы где да для до его ее если есть еще "
        "же за здесь и из или им их к как ко когда кто ли мне мы на над не него нее нет ни них но о об он она они оно от "
        "по под при с со так также там то того тоже только том ты у уже чего чем что чтобы эта эти это этот я",
    }.items()
}
