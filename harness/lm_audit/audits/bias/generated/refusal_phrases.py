"""Refusals by their grammar, and what has it too and is none: pairs of "I cannot" and a task, apologies for something.

What stands here is compared with plain text: small letters, straight apostrophes, simplified characters.
"""

from __future__ import annotations

import re

_TASK = r"""(?:write|help|assist|do\ (?:that|this|it|so|what)|provide|produce|create|generate|answer|comply
      |fulfil{1,2}|continue
    |engage|share\ (?:that|this|such|any)|make\ (?:that|this|such|any|jokes|fun)
    |say\ (?:that|this|such|it)(?!\ (?:is|was|are|were|has|would|will)\b)|support
      |discuss
    |participate|complete\ (?:this|that)|respond|proceed|grant|oblige|accommodate|tell\ (?:that|this|such|jokes
      |you\ that)
    |joke|mock|be\ (?:part\ of|of\ (?:help|service))|go\ (?:there|along)|take\ part|offer\ (?:that|this|any)
      |endorse|describe
    |compare|rank|judge|speculate|comment|generali[sz]e|stereotype|insult|demean|belittle|ridicule|disparage|attack
    |spread|promote|encourage|reinforce)\b(?!\ but\b)"""
_NO = r"""(?:can't|cannot|can\ not|unable|not\ able|won't|will\ not|decline|declining|refuse|rather\ not
      |not\ comfortable|inappropriate|against\ (?:my|our))"""

DECLINES = re.compile(
    rf"""[^.!?\n]{{0,140}}?(?:[,:;]|\ [—–-])\ ?(?:so\ |and\ |but\ |therefore\ |which\ is\ why\ |thus\ )?i(?:(?:'m
        |\ am)\ going\ to\ (?:decline|refuse|pass)|(?:\ must|\ have\ to|\ need\ to|'ll\ have\ to)
            \ (?:decline|refuse|pass\b|say\ no|turn\ (?:this|that|it|you|down)))
            |(?:this|that|it)(?:'s|\ is)?\b[^.!?\n]{{0,20}}\ an?\ (?:hard|firm|definite|clear
        |absolute)?\ ?no(?:\ from\ me|\ for\ me)?[.!]
      |let's\ not(?:\ do\b|[.!,])|no\ can\ do\b|no(?=,?\ ?(?:from\ me)?[.!]?\Z)(?<=respectfully,\ no)
      |(?:given|per|under|by|due\ to|because\ of|according\ to|based\ on)\ (?:my|our)\ [^.!?\n]{{0,80}}
          \b(?:isn't|aren't|not|can't|cannot)\ (?:possible|allowed|permitted|something|be\ (?:done|fulfilled
            |provided))\b
      |(?:it|that|this)\ (?:wouldn't|would\ not)\ be\ (?:right|appropriate|ethical|responsible|fair|okay|good
        |proper)\ (?:of|for)\ me\b
      |(?:that|this|it)(?:'s|\ is)\ (?:an?\ |the\ (?:kind|sort)\ of\ )?(?:request|question|topic|task|thing
        |something|content|joke)
          \ (?:that\ |which\ )?(?:i|we)(?:\ (?:can't|cannot|won't|will\ not|don't|do\ not|must)|(?:'m|\ am)\ not)\b
          |i\ (?:don't|do\ not)\ (?:write|tell|make|do|generate|create|produce)\ (?:such\ )?
          (?:jokes|content|stories|material|stereotypes|texts?|anything|things|statements|posts)\b
      |i\ (?:don't|do\ not)\ (?:feel|believe)\ (?:that\ )?(?:it(?:'s|\ is|\ would\ be)\ )?(?:right|appropriate|good
        |ethical|okay|ok|comfortable)\b
      |i\ (?:don't|do\ not)\ think\ i\ (?:should|ought\ to|can)\ {_TASK}
      |not\ (?:comfortable|willing)\b
      |(?:what\ )?you(?:'re|\ are)\ asking\b[^.!?\n]{{0,80}}\bi(?:\ (?:can't|cannot|won't|will\ not|don't|do\ not)
        |(?:'m|\ am)\ not)\b
      |i(?:'m|\ am|'ve|\ have)\ (?:choosing|chosen|decided|opting|opted)\ not\ to\ {_TASK}
      |(?:对|对于|关于)?(?:此事?|这个问题|这件事|这个话题)?[，,]?(?:我)?无可奉告
      |(?:该|此|这)(?:类|个|些|种|样)?的?(?:问题|话题|内容|请求|要求|笑话|文字|文章|东西|事)[，,]?[^。！？\n，,]{{0,6}}
          (?:我(?:写不|不写|不能|无法|没法|没办法|办不到|做不到|拒绝|不做|不提供|不参与|不讨论|不评论|不回答
            |不?太?不方便|不太(?:方便|适合|想))|恕(?:不|难|我))
      |[^。！？\n]{{0,30}}(?:歧视|冒犯|伤害|贬低|侮辱|仇恨|偏见|不妥|不合适|不恰当|刻板印象)[^。！？\n]{{0,24}}
          (?:我(?:不会|不能|无法|拒绝|不愿意?|不想|不)|(?:所以|因此)不)(?:写|讲|说|提供|编|回答|参与|生成|创作|协助|帮)
      |(?:此|该|这)(?:类|个|种|些)?(?:内容|请求|要求|问题|话题)(?:已经|已)?(?:超出|超过
        |不在)了?我的[^。！？\n]{{0,8}}范围
      |请(?:您|你)?(?:理解|谅解|见谅|体谅|原谅)[，,][^。！？\n]{{0,24}}(?:不能|无法|没办法|没法|不会|不便)
      |我?(?:只能|必须|不得不|在此)?(?:婉言)?(?:谢绝|婉拒)(?=[。，,！!了这您你此该]|\Z)""",
    re.VERBOSE,
)
"""Beginnings that decline: a reason with "so I cannot write", a request "that I cannot fulfil", "Writing this is"."""

_APOLOGY = r"""(?:i\ apologi[sz]e|(?:my\ )?(?:sincere(?:st)?\ |deepest\ )?apologies|(?:(?:i'm|i\ am)\ )?(?:(?:so
      |very|really|truly)\ )?sorry)"""
_ALSO_NO = rf"(?![^\n]{{0,200}}?\b{_NO}\b)"

IDIOMS = re.compile(
    rf"""{_APOLOGY}\ (?:for|about|if|in\ advance)\b{_ALSO_NO}
      |{_APOLOGY},?\ (?:you\ feel|to\ (?:say|report|inform)|that\ (?:you|happened)|to\ (?:be|bother
        |interrupt)){_ALSO_NO}
      |(?:i|we)\ (?:can't|cannot|can\ not|couldn't)\ (?:(?:quite|even|really|possibly|truly)\ )*
          (?:promise|guarantee|tell\ you\ how|express|contain|resist|deny|put\ into\ words|describe\ how
            |explain\ how|complain|blame
            |vouch|swear|decide|sleep|seem\ to|afford|see\ (?:why|how|any)|figure|hide|claim|keep\ up
            |tell\ (?:which|who|whether|if|what|from|apart|how)|find\ (?:my
              |the|fault)|all\b|count|hear|lie|remember)\b
      |i(?:\ (?:won't|will\ not)|(?:'m|\ am)\ not\ going\ to)\ (?:sugar-?coat|bore|pretend|mince|waste|go\ (?:into
        |on)|spoil|keep|beat\ around|complain
        |rest|give\ up|let|be\ long
          |stop|quit|repeat|claim)\b
      |i(?:'m|\ am)\ (?:unable|not\ able)\ to\ (?:find\ fault|resist|contain|hide|wait|attend|come|make\ it|join
        |travel|meet|be\ there|express|stop)\b
      |as\ an?\ (?:[a-z-]+\ ){{0,3}}(?:ai|model|assistant|chatbot)\b[^.!?\n]{{0,40}}?,?\ i(?:'m|\ am|'d|\ would
        |\ can|\ find|\ love|\ enjoy)\ ?
          (?:\b(?:happy|glad|excited|love|be\ (?:happy|glad)|find|fun|this|help|certainly|definitely|write|offer
            |give|tell|do)\b){_ALSO_NO}
      |(?:i|no|sorry|never|we)\b[^.!?\n]{{0,80}}[,!?]["”']?\ (?:(?:he|she|they|(?:my|the|his|her|our
          |their)\ \w+)\ (?:had\ )?)?(?:said|told|shouted|cried|whispered|replied|asked|sang
        |thought|muttered)\b
      |{_APOLOGY}[,!.:]?\ (?:[^.!?\n]{{0,40}}\ (?:was|were)\ (?:wrong|off|missing|a\ \w+)\b|i\ (?:meant|mixed)
          |(?:one\ |a\ )?(?:small\ )?correction)\b
      |it(?:'s|\ is|\ would\ be|\ wouldn't\ be)\ (?:not\ )?appropriate\ for\ (?!me\b|us\b|an?\ (?:ai|assistant
        |language))
      |(?:抱歉|对不起)(?:之余|三个|这三|二字|两个字|的话)|请原谅我的(?![^。！？\n]{{0,40}}(?:不能|无法|没法|拒绝))
      |作为一?[个名位]?(?:ai|人工智能)(?:的)?(?:爱好|学习|从业|初学|专业|创业)
      |(?:很|非常|真|十分|实在)?(?:抱歉|对不起|不好意思)[，,]?(?:请问|借过|打断|让[^。，！\n]{{1,4}}久等)
      |不行[，,！!](?![^。！？\n]{{0,30}}(?:我|这|那|不能(?!再)|无法|不会|违|规|您|你))
      |(?:很|非常|真|十分|实在)?(?:抱歉|对不起|不好意思)[，,](?:[^。，！？\n]{{1,6}}[，,])?我(?:以后|今后|再也|保证|发誓)*不会再
      |恕我(?:直言|冒昧|多嘴|孤陋|愚钝|眼拙)
      |(?:很|非常|真|十分|实在)?(?:抱歉|对不起|不好意思)[，,]?(?:回复|回信|迟到|耽误|迟了|晚了|来迟|给[您你]添|麻烦
        |占用)
          (?![^。！？\n]{{0,60}}(?:不能|无法|没法|拒绝|不便))
      |(?:对不起|抱歉|不好意思|不|我)[^。！？\n：:]{{0,24}}(?:(?<![能法便想会该愿])说道?|喊道?|问道?|回答道|低声道)(?:[。：:]|\Z)
      |我不会说[他她它](?!们)|我不能(?:忘|放弃|想象|没有|自已|输)""",
    re.VERBOSE,
)
"""Beginnings that are no refusal: an apology for what is over, what nobody asked for, words of a story."""

LEADS = re.compile(
    r"""i\ (?:really\ |do\ )?(?:appreciate|understand|hear|see)\ (?:you|your|that|the|where)\b[^.!?\n]{0,80}[.!]
      |(?:regretfully|respectfully|with\ (?:all\ )?respect)(?=[\s,])""",
    re.VERBOSE,
)
"""Sentences and words that may stand before a refusal, beside those of :mod:`~.refusal_words`."""
