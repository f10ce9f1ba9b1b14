/* What the random functions of functions.rs are made of, and f0, which calls the first. */
typedef unsigned long u64; typedef unsigned u32; typedef unsigned short u16; typedef unsigned char u8;
typedef long s64; typedef int s32; typedef short s16; typedef signed char s8; typedef unsigned __int128 u128;
typedef unsigned long size_t; typedef __builtin_va_list va_list;
#define noinline __attribute__((noinline))
extern char dom0_data[];
#define M(t,i) (*(t *)(dom0_data + ((u64)(i) & 0x7fe8)))
#define MU(t,i) (((struct { t v; } __attribute__((packed)) *)(dom0_data + ((u64)(i) & 0x7fe7)))->v)
struct list { struct list *next, *prev; };
struct node { u64 v; struct list l; u32 w; };
struct s1 { u32 a; u8 b[5]; u64 c; u16 f1:3, f2:7, f3:6; };
struct s2 { u64 a, b, c, d, e; };
struct s3 { u64 a, b; };
struct s4 { u8 b[3]; };
struct s5 { u64 a; u32 f1:5, f2:11, f3:16; s64 g:37; u64 h:20; };
struct s6 { struct s2 x; u32 y[7]; };
struct s7 { u16 a, b; };
struct big { u64 a; u32 x[4]; u8 pad[4056]; u64 b; u16 y[8]; u8 pad2[5000]; u64 c; u32 z[8]; };
void *memcpy(void *, const void *, size_t);
void *memset(void *, int, size_t);
void *memmove(void *, const void *, size_t);
int memcmp(const void *, const void *, size_t);
size_t strlen(const void *);
u64 start(u64, u64, u64, u64, u64, u64);
static inline u64 h_s1(struct s1 s){ return s.a*3+s.b[0]+s.b[4]*5+s.c+s.f1+s.f2*9+s.f3; }
static inline u64 h_s2(struct s2 s){ return s.a+s.b*3+s.c*5+s.d*7+s.e*11; }
static inline u64 h_s3(struct s3 s){ return s.a^s.b*3; }
static inline u64 h_s4(struct s4 s){ return s.b[0]+s.b[1]*3+s.b[2]*7; }
static inline u64 h_s5(struct s5 s){ return s.a+s.f1+s.f2*3+s.f3*5+s.g*7+s.h*9; }
static inline u64 h_s6(struct s6 s){ return h_s2(s.x)+s.y[0]+s.y[3]*3+s.y[6]*5; }
static inline u64 h_s7(struct s7 s){ return s.a*3+s.b; }
static inline struct s1 m_s1(u64 x){ struct s1 s={x,{x>>8,x>>3,x>>5,x>>7,x>>9},x*7,x>>2,x>>4,x>>6}; return s; }
static inline struct s2 m_s2(u64 x){ struct s2 s={x,x*3,x>>7,x^99,~x}; return s; }
static inline struct s3 m_s3(u64 x){ struct s3 s={x*9,x-1}; return s; }
static inline struct s4 m_s4(u64 x){ struct s4 s={{x,x>>8,x>>16}}; return s; }
static inline struct s5 m_s5(u64 x){ struct s5 s={x*5,x,x>>5,x>>9,x>>3,x>>11}; return s; }
static inline struct s6 m_s6(u64 x){ struct s6 s={{x,x+1,x+2,x*3,x*5},{x,x>>1,x>>2,x>>3,x>>4,x>>5,x>>6}}; return s; }
static inline struct s7 m_s7(u64 x){ struct s7 s={x,x>>16}; return s; }
static inline void list_init(struct list *h){ h->next=h->prev=h; }
static inline void list_add(struct list *n, struct list *h){ n->next=h->next; n->prev=h; h->next->prev=n; h->next=n; }
static inline void list_tail(struct list *n, struct list *h){ n->prev=h->prev; n->next=h; h->prev->next=n; h->prev=n; }
static inline void list_del(struct list *n){ n->next->prev=n->prev; n->prev->next=n->next; }
#define node_of(p) ((struct node *)((char *)(p) - 8))
static noinline void list_splice_n(struct list *a, struct list *b){ if (a->next!=a){ struct list *f=a->next,*l=a->prev,*at=b->next; f->prev=b; b->next=f; l->next=at; at->prev=l; list_init(a);} }
static noinline u64 list_sum(struct list *h){ u64 s=0; struct list *p; int n=0; for(p=h->next;p!=h&&n<64;p=p->next,n++) s=s*31+node_of(p)->v+node_of(p)->w; return s; }
static noinline u64 sum_va(int n, ...){ va_list ap; u64 s=0; __builtin_va_start(ap,n); while(n-->0) s=s*5+__builtin_va_arg(ap,u64); __builtin_va_end(ap); return s; }
static noinline u64 sum_va2(u64 k, int n, ...){ va_list ap, aq; u64 s=k; int i; __builtin_va_start(ap,n); __builtin_va_copy(aq,ap); for(i=0;i<n;i++) s=s*7+__builtin_va_arg(ap,u32); for(i=0;i<n;i++) s^=__builtin_va_arg(aq,u64)<<i; __builtin_va_end(aq); __builtin_va_end(ap); return s; }
static noinline void fill(u64 *p, u64 v, u64 n){ u64 i; for(i=0;i<n;i++) p[i]=v+i*3; }
static __attribute__((cold)) noinline void cold1(u64 *p, u64 v) { *p ^= v * 3; }
static __attribute__((cold)) noinline u64 cold2(u64 a, u64 b, u64 c, u64 d, u64 e, u64 f, u64 g, u64 h) { return a + b * 2 + c * 3 + d * 5 + e * 7 + f * 9 + g * 11 + h * 13; }
static noinline void bump(u64 *p){ *p += 12345; }
static noinline void bump8(u8 *p){ *p += 77; }
static noinline void swap2(u64 *a, u64 *b){ u64 t=*a; *a=*b; *b=t; }
static noinline void **chase(void **p){ return (void **)*p; }
static inline void bts(u64 *p, s64 n){ asm volatile("btsq %1,%0":"+m"(*p):"Jr"(n):"memory"); }
static inline void lock_btr(u64 *p, s64 n){ asm volatile("lock; btrq %1,%0":"+m"(*p):"Jr"(n):"memory"); }
static inline int btest(const u64 *p, s64 n){ u8 c; asm volatile("btq %2,%1; setc %0":"=q"(c):"m"(*p),"Jr"(n):"memory"); return c; }

asm(".text\n.globl f0\n.type f0,@function\nf0: lea -0x200(%rsp),%rsp\nlea -8(%rsp),%rsp\ncall start\nlea 8(%rsp),%rsp\nxor %edx,%edx\nlea 0x200(%rsp),%rsp\nret\n.size f0,.-f0\n"
".globl memcpy\n.type memcpy,@function\nmemcpy: mov %rdi,%rax\nmov %rdx,%rcx\nrep movsb\nret\n.size memcpy,.-memcpy\n"
".globl memmove\n.type memmove,@function\nmemmove: mov %rdi,%rax\nmov %rdx,%rcx\ncmp %rsi,%rdi\njbe 1f\nstd\nlea -1(%rdi,%rdx),%rdi\nlea -1(%rsi,%rdx),%rsi\nrep movsb\ncld\nret\n1: rep movsb\nret\n.size memmove,.-memmove\n"
".globl memset\n.type memset,@function\nmemset: mov %rdi,%r8\nmov %esi,%eax\nmov %rdx,%rcx\nrep stosb\nmov %r8,%rax\nret\n.size memset,.-memset\n"
".globl __stack_chk_fail\n.type __stack_chk_fail,@function\n__stack_chk_fail: ud2\n.size __stack_chk_fail,.-__stack_chk_fail\n"
".globl strlen\n.type strlen,@function\nstrlen: xor %eax,%eax\n1: cmpb $0,(%rdi,%rax)\nje 2f\ninc %rax\njmp 1b\n2: ret\n.size strlen,.-strlen\n"
".globl memcmp\n.type memcmp,@function\nmemcmp: xor %eax,%eax\nmov %rdx,%rcx\ntest %rcx,%rcx\nje 1f\nrepe cmpsb\nseta %al\nsbb $0,%eax\n1: ret\n.size memcmp,.-memcmp\n");
